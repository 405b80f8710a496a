// Every page and its address. What a page shows is in its address, so that each state of it can be sent to somebody.
import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { APP_TABS } from "./apps/tabs";
import { PANEL_TABS } from "./sessions/panel/tabs";
import { conversationQuery, sessionQuery } from "./sessions/queries";
import { Crash, NotFound, Shell } from "./shell/Shell";
import { Skeleton } from "./ui/basics";

const text = (value: unknown): string | undefined => (typeof value === "string" || typeof value === "number" ? String(value) || undefined : undefined);
const whole = (value: unknown): number | undefined => {
  const found = Number(value);
  return value !== undefined && value !== "" && Number.isSafeInteger(found) && found >= 0 ? found : undefined;
};
const flag = (value: unknown): true | undefined => (value === true || value === 1 || value === "1" || value === "true" ? true : undefined);

/** Everything in a query may be left out. */
const query =
  <T extends object>(read: (search: Record<string, unknown>) => T) =>
  (search: Record<string, unknown>): Partial<T> =>
    read(search);

const root = createRootRouteWithContext<{ client: QueryClient }>()({ component: Shell, notFoundComponent: NotFound });

const start = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    // An invitation's link is in the hash.
    throw redirect({ to: "/projects", hash: true, replace: true });
  },
});

const sessions = createRoute({
  getParentRoute: () => root,
  path: "/sessions",
  component: lazyRouteComponent(() => import("./sessions/SessionsLayout"), "SessionsLayout"),
});
const latestSession = createRoute({ getParentRoute: () => sessions, path: "/", component: lazyRouteComponent(() => import("./sessions/LatestSession"), "LatestSession") });
export const newSessionRoute = createRoute({
  getParentRoute: () => sessions,
  path: "new",
  validateSearch: query((search) => ({ project: text(search.project), app: text(search.app) })),
  component: lazyRouteComponent(() => import("./sessions/NewSessionPage"), "NewSessionPage"),
});
const runRoute = createRoute({ getParentRoute: () => sessions, path: "run/$run", component: lazyRouteComponent(() => import("./sessions/RunPage"), "RunPage") });
const exampleRoute = createRoute({ getParentRoute: () => sessions, path: "example", component: lazyRouteComponent(() => import("./sessions/ExamplePage"), "ExamplePage") });
export const sessionRoute = createRoute({
  getParentRoute: () => sessions,
  path: "$session",
  validateSearch: query((search) => ({ panel: PANEL_TABS.find((tab) => tab === search.panel), file: text(search.file), message: text(search.message) })),
  // What it shows is asked for while its code is still on the way.
  loader: ({ context: { client }, params: { session } }) => {
    void client.prefetchQuery(sessionQuery(session));
    void client.prefetchQuery(conversationQuery(session));
  },
  component: lazyRouteComponent(() => import("./sessions/SessionPage"), "SessionPage"),
});
const inboxRoute = createRoute({ getParentRoute: () => root, path: "/inbox", component: lazyRouteComponent(() => import("./inbox/InboxPage"), "InboxPage") });

const projects = createRoute({
  getParentRoute: () => root,
  path: "/projects",
  validateSearch: query((search) => ({ q: text(search.q), new: flag(search.new) })),
  component: lazyRouteComponent(() => import("./projects/ProjectListPage"), "ProjectListPage"),
});

export const projectRoute = createRoute({
  getParentRoute: () => root,
  path: "/projects/$project",
  component: lazyRouteComponent(() => import("./projects/ProjectLayout"), "ProjectLayout"),
});

const projectStart = createRoute({
  getParentRoute: () => projectRoute,
  path: "/",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/projects/$project/files/$", params: { project: params.project, _splat: "" }, replace: true });
  },
});

export const filesRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: "files/$",
  validateSearch: query((search) => ({
    at: whole(search.at), // the snapshot; left out: now
    lines: text(search.lines), // "4" or "4-9"
    blame: flag(search.blame),
    edit: flag(search.edit),
  })),
  component: lazyRouteComponent(() => import("./projects/FilesPage"), "FilesPage"),
});

export const logRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: "log",
  validateSearch: query((search) => ({ path: text(search.path), principal: text(search.principal), run: text(search.run), undo: whole(search.undo), rollback: whole(search.rollback) })),
  component: lazyRouteComponent(() => import("./projects/LogPage"), "LogPage"),
});

export const compareRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: "compare",
  validateSearch: query((search) => ({ old: text(search.old), new: text(search.new), path: text(search.path) })),
  component: lazyRouteComponent(() => import("./projects/ComparePage"), "ComparePage"),
});

export const searchRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: "search",
  validateSearch: query((search) => ({
    q: text(search.q), regex: flag(search.regex), case: flag(search.case), word: flag(search.word), glob: text(search.glob), at: whole(search.at),
  })),
  component: lazyRouteComponent(() => import("./projects/SearchPage"), "SearchPage"),
});

export const workspacesRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: "agents",
  validateSearch: query((search) => ({ all: flag(search.all), show: text(search.show) })),
  component: lazyRouteComponent(() => import("./projects/WorkspacesPage"), "WorkspacesPage"),
});

export const accessRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: "access",
  validateSearch: query((search) => ({ path: text(search.path), who: text(search.who) })),
  component: lazyRouteComponent(() => import("./projects/AccessPage"), "AccessPage"),
});

const auditSearch = query((search) => ({
  principal: text(search.principal), action: text(search.action), path: text(search.path), via: text(search.via), since: text(search.since), until: text(search.until),
}));

export const auditRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: "audit",
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import("./admin/AuditPages"), "ProjectAuditPage"),
});

export const reviewRoute = createRoute({
  getParentRoute: () => root,
  path: "/review",
  validateSearch: query((search) => ({
    project: text(search.project),
    state: (["resolved", "rejected", "obsolete"] as const).find((state) => state === search.state),
    item: text(search.item), // project/id
  })),
  component: lazyRouteComponent(() => import("./review/ReviewPage"), "ReviewPage"),
});

const store = createRoute({
  getParentRoute: () => root,
  path: "/store",
  validateSearch: query((search) => ({ q: text(search.q), new: flag(search.new) })),
  component: lazyRouteComponent(() => import("./apps/StorePage"), "StorePage"),
});
const appRoute = createRoute({
  getParentRoute: () => root,
  path: "/store/$app",
  validateSearch: query((search) => ({
    tab: APP_TABS.find((tab) => tab === search.tab), project: text(search.project), old: text(search.old), new: text(search.new), show: text(search.show),
  })),
  component: lazyRouteComponent(() => import("./apps/AppPage"), "AppPage"),
});
const accountRoute = createRoute({ getParentRoute: () => root, path: "/account", component: lazyRouteComponent(() => import("./account/AccountPage"), "AccountPage") });

const admin = createRoute({
  getParentRoute: () => root,
  path: "/admin",
  component: lazyRouteComponent(() => import("./admin/AdminLayout"), "AdminLayout"),
});
const adminStart = createRoute({
  getParentRoute: () => admin,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/admin/health", replace: true });
  },
});
const health = createRoute({ getParentRoute: () => admin, path: "health", component: lazyRouteComponent(() => import("./admin/HealthPage"), "HealthPage") });
const tokens = createRoute({ getParentRoute: () => admin, path: "tokens", component: lazyRouteComponent(() => import("./admin/TokensPage"), "TokensPage") });
const people = createRoute({
  getParentRoute: () => admin,
  path: "people",
  validateSearch: query((search) => ({ department: text(search.department), new: flag(search.new) })),
  component: lazyRouteComponent(() => import("./people/PeoplePage"), "PeoplePage"),
});
const roles = createRoute({
  getParentRoute: () => admin,
  path: "roles",
  validateSearch: query((search) => ({ who: text(search.who), action: text(search.action), scope: text(search.scope) })),
  component: lazyRouteComponent(() => import("./people/RolesPage"), "RolesPage"),
});
const usage = createRoute({
  getParentRoute: () => admin,
  path: "usage",
  validateSearch: query((search) => ({
    by: (["person", "project", "model", "day"] as const).find((by) => by === search.by), since: text(search.since), until: text(search.until),
  })),
  component: lazyRouteComponent(() => import("./admin/UsagePage"), "UsagePage"),
});
export const systemAuditRoute = createRoute({
  getParentRoute: () => admin,
  path: "audit",
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import("./admin/AuditPages"), "SystemAuditPage"),
});

const routeTree = root.addChildren([
  start,
  sessions.addChildren([latestSession, newSessionRoute, exampleRoute, runRoute, sessionRoute]),
  inboxRoute,
  projects,
  projectRoute.addChildren([projectStart, filesRoute, logRoute, compareRoute, searchRoute, workspacesRoute, accessRoute, auditRoute]),
  reviewRoute,
  store,
  appRoute,
  accountRoute,
  admin.addChildren([adminStart, health, usage, people, roles, tokens, systemAuditRoute]),
]);

export function createAppRouter(client: QueryClient) {
  return createRouter({
    routeTree,
    context: { client },
    defaultPreload: "intent",
    defaultPendingComponent: () => <Skeleton lines={6} />,
    defaultErrorComponent: Crash,
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
