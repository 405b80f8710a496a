// The frame around every page: navigation, live status, the command palette, shortcuts, what just happened.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ErrorComponentProps, Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { FolderTree, GitMerge, Inbox, type LucideIcon, MessagesSquare, Search, ShieldCheck, Store } from "lucide-react";
import { useEffect, useState } from "react";
import { storeQuery } from "../apps/queries";
import { meQuery, projectsQuery, reviewsQuery } from "../api/queries";
import { useLiveStatus } from "../live/hooks";
import { questionsQuery } from "../sessions/queries";
import markUrl from "../mark.svg";
import { useText } from "../text";
import { classes, Empty, IconButton, Problem, Skeleton } from "../ui/basics";
import { formatAge } from "../ui/format";
import { Toasts, undoLast } from "../ui/toasts";
import { AccountMenu } from "./AccountMenu";
import { shown, useShortcut } from "./keyboard";
import { LINK, Login } from "./Login";
import { Palette } from "./Palette";
import { ShortcutList } from "./ShortcutList";

type Section = { to: "/sessions" | "/inbox" | "/projects" | "/review" | "/store" | "/admin"; label: string; icon: LucideIcon; count?: number };

export function Shell() {
  const t = useText();
  const navigate = useNavigate();
  const me = useQuery(meQuery());
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  useShortcut("mod+k", t.shortcuts.palette, () => setPalette((open) => !open), true, true);
  useShortcut("?", t.shortcuts.help, () => setHelp(true), true, true);
  useShortcut("g p", t.shortcuts.goProjects, () => void navigate({ to: "/projects" }), true, true);
  useShortcut("g s", t.shortcuts.goSessions, () => void navigate({ to: "/sessions" }), true, true);
  useShortcut("g i", t.shortcuts.goInbox, () => void navigate({ to: "/inbox" }), true, true);
  useShortcut("g r", t.shortcuts.goReview, () => void navigate({ to: "/review" }), true, true);
  useShortcut("g a", t.shortcuts.goStore, () => void navigate({ to: "/store" }), true, true);
  useShortcut("u", t.common.undo, undoLast, true, true);

  if (me.isPending) return <Skeleton lines={4} className="mx-auto max-w-sm pt-32" />;
  // A link to choose a password is for whoever opens it, also where somebody is logged in already.
  if (LINK.test(window.location.hash)) return <Login expired={false} />;
  if (me.data === null || (me.error && (me.error as { status?: number }).status === 401)) return <Login expired={me.data === null} />;
  if (me.error && !me.data) return <Problem error={me.error} retry={() => void me.refetch()} />;
  const isAdmin = me.data?.actions.includes("admin") ?? false;
  return (
    <div className="flex h-full flex-col md:flex-row">
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-panel focus:p-2">{t.nav.skip}</a>
      <Navigation isAdmin={isAdmin} onPalette={() => setPalette(true)} />
      <main id="content" tabIndex={-1} className="order-1 flex min-h-0 min-w-0 flex-1 flex-col focus:outline-none md:order-2">
        <LostConnection />
        <Outlet />
      </main>
      <Palette open={palette} onClose={() => setPalette(false)} isAdmin={isAdmin} onHelp={() => setHelp(true)} />
      <ShortcutList open={help} onClose={() => setHelp(false)} />
      <Toasts />
    </div>
  );
}

/** How many things wait for a decision, in all projects. */
function useWaiting(): number {
  const client = useQueryClient();
  const projects = useQuery(projectsQuery()).data;
  const names = (projects ?? []).slice(0, 50).map((one) => one.name);
  const waiting = useQuery({
    queryKey: ["reviews", "*", names],
    enabled: names.length > 0,
    refetchInterval: 60_000,
    queryFn: async () => {
      const pages = await Promise.all(names.map((name) => client.fetchQuery(reviewsQuery(name, "open")).catch(() => null)));
      return pages.reduce((sum, page) => sum + (page?.reviews.length ?? 0), 0);
    },
  });
  return waiting.data ?? 0;
}

function Navigation({ isAdmin, onPalette }: { isAdmin: boolean; onPalette: () => void }) {
  const t = useText();
  const waiting = useWaiting();
  const questions = useQuery(questionsQuery()).data?.length;
  // One person on one machine has no apps, and needs no store.
  const hasApps = !!useQuery({ ...storeQuery(), staleTime: 300_000 }).data?.length;
  const sections: Section[] = [
    { to: "/sessions", label: t.nav.sessions, icon: MessagesSquare },
    { to: "/projects", label: t.nav.projects, icon: FolderTree },
    { to: "/inbox", label: t.nav.inbox, icon: Inbox, count: questions },
    { to: "/review", label: t.nav.review, icon: GitMerge, count: waiting },
    ...(hasApps ? [{ to: "/store" as const, label: t.nav.store, icon: Store }] : []),
    ...(isAdmin ? [{ to: "/admin" as const, label: t.nav.admin, icon: ShieldCheck }] : []),
  ];
  return (
    <nav
      aria-label={t.nav.main}
      className="order-2 flex shrink-0 items-center border-t px-1 bg-background md:order-1 md:w-14 md:flex-col md:items-stretch md:border-t-0 md:px-0 md:border-r"
    >
      <Link to="/projects" className="hidden h-12 items-center justify-center md:flex" aria-label="contextbase">
        <img src={markUrl} alt="" width={22} height={22} />
      </Link>
      {sections.map(({ to, label, icon: Icon, count }) => (
        <Link
          key={to}
          to={to}
          className="relative flex flex-1 flex-col items-center gap-0.5 py-2 text-[10.5px] leading-4 text-muted hover:text-text md:mx-1 md:flex-none md:rounded-md md:hover:bg-hover"
          activeProps={{ className: "!text-text font-medium md:bg-hover", "aria-current": "page" }}
        >
          <Icon size={18} strokeWidth={1.5} aria-hidden />
          <span className="max-w-full truncate">{label}</span>
          {!!count && (
            <span className="absolute top-0.5 left-1/2 ml-1.5 min-w-4 rounded-full bg-waiting px-1 text-center text-[10px] leading-4 text-background tabular">{count}</span>
          )}
        </Link>
      ))}
      <div className="flex items-center md:mt-auto md:flex-col md:gap-1 md:pb-3">
        <IconButton label={`${t.nav.palette} (${shown("mod+k")})`} onClick={onPalette} className="md:mx-auto"><Search size={17} strokeWidth={1.5} /></IconButton>
        <LiveDot />
        <AccountMenu />
      </div>
    </nav>
  );
}

function LiveDot() {
  const t = useText();
  const status = useLiveStatus();
  const label = status.state === "live" ? t.live.live : status.state === "connecting" ? t.live.connecting : t.live.lost(formatAge(status.since));
  return (
    <span role="img" aria-label={label} title={label} className="hidden size-8 items-center justify-center md:inline-flex">
      <span className={classes("size-2 rounded-full", status.state === "live" ? "bg-written" : status.state === "lost" ? "bg-refused" : "bg-faint")} />
    </span>
  );
}

function LostConnection() {
  const t = useText();
  const status = useLiveStatus();
  const [, tick] = useState(0);
  const isLost = status.state === "lost";
  useEffect(() => {
    if (!isLost) return;
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [isLost]);
  if (!isLost) return null;
  return (
    <div role="status" data-testid="lost" className="shrink-0 border-b bg-waiting-soft px-4 py-1 text-sm text-waiting">
      {t.live.lost(formatAge(status.since))}
    </div>
  );
}

export function NotFound() {
  const t = useText();
  return <Empty title={t.errors.notFound}>{t.errors.notFoundHint}</Empty>;
}

export function Crash({ error, reset }: ErrorComponentProps) {
  const t = useText();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => reset, [path, reset]);
  return (
    <div>
      <h1 className="sr-only">{t.errors.crashed}</h1>
      <Problem error={error} retry={() => window.location.reload()} />
    </div>
  );
}
