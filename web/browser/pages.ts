import { ask } from "./browser";

// Every page of the workbench with something on it; tests and pictures go through all of them.
export type Shown = { name: string; path: string; ready: string };

function pages(reviewItem: string, session: string): Shown[] {
  return [
    { name: "session", path: `/sessions/${session}?panel=changes`, ready: '[data-testid="landing"]' },
    { name: "session-agent", path: `/sessions/${session}?panel=agent`, ready: "text=syncing" },
    { name: "session-files", path: `/sessions/${session}?panel=files`, ready: '[data-testid="landing"]' },
    { name: "session-preview", path: `/sessions/${session}?panel=preview&file=plan.md`, ready: '[data-testid="landing"]' },
    { name: "session-terminal", path: `/sessions/${session}?panel=terminal`, ready: '[data-testid="terminal-tab"]' },
    { name: "session-new", path: "/sessions/new?project=notes", ready: "textarea" },
    { name: "example", path: "/sessions/example", ready: "text=Start the example" },
    { name: "inbox", path: "/inbox", ready: "text=in review" },
    { name: "projects", path: "/projects", ready: "text=notes" },
    { name: "project-empty", path: "/projects/empty", ready: "text=contextbase import" },
    { name: "files", path: "/projects/notes/files/", ready: '[role="treeitem"]' },
    { name: "file", path: "/projects/notes/files/plan.md", ready: ".cm-line" },
    { name: "blame", path: "/projects/notes/files/plan.md?blame=true&lines=4-5", ready: ".cm-blame span" },
    { name: "edit", path: "/projects/notes/files/src/prices.py?edit=true", ready: '.cm-content[contenteditable="true"]' },
    { name: "picture", path: "/projects/notes/files/logo.png", ready: 'img[alt="logo.png"]' },
    { name: "binary", path: "/projects/notes/files/data.bin", ready: "text=octet-stream" },
    { name: "past", path: "/projects/notes/files/plan.md?at=3", ready: ".cm-line" },
    { name: "history", path: "/projects/notes/log", ready: "text=Start the plan" },
    { name: "undo", path: "/projects/notes/log?undo=2", ready: '[role="dialog"] summary' },
    { name: "compare", path: "/projects/notes/compare?old=1&new=head", ready: "article" },
    { name: "search", path: "/projects/notes/search?q=launch", ready: "mark" },
    { name: "agents", path: "/projects/notes/agents", ready: "article" },
    { name: "access", path: "/projects/notes/access?who=agent%3Alaunch&path=legal%2Fterms.md", ready: "table" },
    { name: "audit", path: "/projects/notes/audit", ready: "table" },
    { name: "review", path: `/review?item=${encodeURIComponent(reviewItem)}`, ready: '[role="radio"]' },
    { name: "store", path: "/store", ready: "article" },
    { name: "app", path: "/store/helper", ready: "dl" },
    { name: "app-config", path: "/store/helper?tab=config", ready: "table" },
    { name: "app-knowledge", path: "/store/helper?tab=knowledge", ready: "table" },
    { name: "app-manifests", path: "/store/helper?tab=manifests", ready: 'td:has-text("conflict")' },
    { name: "app-secrets", path: "/store/helper?tab=secrets", ready: "table" },
    { name: "app-visibility", path: "/store/helper?tab=visibility", ready: "textarea" },
    { name: "app-session", path: "/sessions/new?app=helper", ready: "textarea" },
    { name: "people", path: "/admin/people", ready: 'td:has-text("Dora Lind")' },
    { name: "people-new", path: "/admin/people?new=true", ready: '[role="dialog"] form' },
    { name: "roles", path: "/admin/roles?who=dora&action=use_app&scope=app%3Ahelper", ready: '[data-testid="explained"]' },
    { name: "usage", path: "/admin/usage", ready: "table" },
    { name: "account", path: "/account", ready: "h2" },
    { name: "health", path: "/admin/health", ready: "table" },
    { name: "tokens", path: "/admin/tokens", ready: "table" },
    { name: "system-audit", path: "/admin/audit", ready: "table" },
  ];
}

/** With an item that waits in review, and the conversation that the tests' world has. */
export async function allPages(inReview: string): Promise<Shown[]> {
  const { reviews } = await ask<{ reviews: { id: string; path: string }[] }>("GET", "/api/v1/reviews?project=notes&state=open");
  const { sessions } = await ask<{ sessions: { id: string }[] }>("GET", "/api/v1/sessions?project=notes");
  const item = reviews.find((one) => one.path === inReview) ?? reviews[0];
  return pages(`notes/${item?.id}`, sessions.at(-1)?.id ?? "");
}
