// Ctrl/Cmd K: any page, project, file or action, by a few letters.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { ADMIN_PAGES, adminTitle } from "../admin/pages";
import { api, body } from "../api/client";
import { projectsQuery } from "../api/queries";
import { useText } from "../text";
import { classes, Kbd } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { shown, useShortcuts } from "./keyboard";
import { matches } from "./matching";

type Choice = { id: string; group: string; label: string; hint?: string; run: () => void };

export function Palette({ open, onClose, isAdmin, onHelp }: { open: boolean; onClose: () => void; isAdmin: boolean; onHelp: () => void }) {
  const t = useText();
  return (
    <Dialog title={t.palette.title} open={open} onClose={onClose} hideTitle>
      <Chooser onClose={onClose} isAdmin={isAdmin} onHelp={onHelp} />
    </Dialog>
  );
}

function Chooser({ onClose, isAdmin, onHelp }: { onClose: () => void; isAdmin: boolean; onHelp: () => void }) {
  const t = useText();
  const navigate = useNavigate();
  const [words, setWords] = useState("");
  const [active, setActive] = useState(0);
  const question = useDeferredValue(words.trim());
  const project = useRouterState({ select: (state) => /^\/projects\/([^/]+)/.exec(state.location.pathname)?.[1] });
  const projects = useQuery(projectsQuery()).data ?? [];
  const shortcuts = useShortcuts();
  const files = useQuery({
    queryKey: ["project", project, "names", question],
    enabled: !!project && question.length > 0,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body(api.GET("/api/v1/search/names", { params: { query: { project: project ?? "", name: question, limit: 12 } }, signal })),
  });

  const pages: Choice[] = [
    { id: "sessions", group: t.palette.pages, label: t.nav.sessions, run: () => void navigate({ to: "/sessions" }) },
    { id: "inbox", group: t.palette.pages, label: t.nav.inbox, run: () => void navigate({ to: "/inbox" }) },
    { id: "projects", group: t.palette.pages, label: t.nav.projects, run: () => void navigate({ to: "/projects" }) },
    { id: "review", group: t.palette.pages, label: t.nav.review, run: () => void navigate({ to: "/review" }) },
    { id: "store", group: t.palette.pages, label: t.nav.store, run: () => void navigate({ to: "/store" }) },
    { id: "account", group: t.palette.pages, label: t.account.title, run: () => void navigate({ to: "/account" }) },
    ...(project
      ? ([["files/$", t.project.files], ["log", t.project.log], ["compare", t.project.compare], ["search", t.project.search], ["agents", t.project.workspaces], ["access", t.project.settings], ["audit", t.project.audit]] as const).map(
          ([page, label]) => ({ id: page, group: t.palette.pages, label, hint: project, run: () => void navigate({ to: `/projects/$project/${page}`, params: { project, _splat: "" } }) }),
        )
      : []),
    ...(isAdmin ? ADMIN_PAGES.map((page) => ({ id: `admin-${page}`, group: t.palette.pages, label: adminTitle(t, page), hint: t.nav.admin, run: () => void navigate({ to: `/admin/${page}` }) })) : []),
  ];
  const actions: Choice[] = [
    { id: "new-session", group: t.palette.actions, label: t.sessions.new, run: () => void navigate({ to: "/sessions/new", search: { project } }) },
    { id: "new", group: t.palette.actions, label: t.projects.new, run: () => void navigate({ to: "/projects", search: { new: true } }) },
    { id: "help", group: t.palette.actions, label: t.shortcuts.title, hint: "?", run: onHelp },
    ...shortcuts
      .filter((one) => !one.everywhere)
      .map((one) => ({ id: `key-${one.keys}`, group: t.palette.actions, label: one.label, hint: shown(one.keys), run: () => one.run(new KeyboardEvent("keydown")) })),
  ];
  const found: Choice[] = [
    ...pages.filter((one) => matches(one.label, question)),
    ...projects.filter((one) => matches(one.name, question)).slice(0, 8).map((one) => ({
      id: `project-${one.name}`, group: t.palette.projects, label: one.name, run: () => void navigate({ to: "/projects/$project", params: { project: one.name } }),
    })),
    ...(question && project ? (files.data?.paths ?? []) : []).map((path) => ({
      id: `file-${path}`, group: t.palette.files, label: path, run: () => void navigate({ to: "/projects/$project/files/$", params: { project: project ?? "", _splat: path } }),
    })),
    ...actions.filter((one) => matches(one.label, question)),
    ...(question && project
      ? [{ id: "search", group: t.palette.actions, label: t.palette.searchFor(question), run: () => void navigate({ to: "/projects/$project/search", params: { project }, search: { q: question } }) }]
      : []),
  ];
  const at = Math.min(active, Math.max(0, found.length - 1));
  const choose = (one: Choice | undefined) => {
    if (!one) return;
    onClose();
    setTimeout(one.run); // after the dialog gave the keyboard back
  };
  return (
    <div className="flex min-h-0 flex-col">
      <input
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls="palette-choices"
        aria-activedescendant={found[at] ? `choice-${at}` : undefined}
        aria-label={t.palette.title}
        placeholder={t.palette.placeholder}
        className="h-12 shrink-0 border-b bg-transparent px-4 text-base focus:outline-none"
        value={words}
        onChange={(event) => {
          setWords(event.target.value);
          setActive(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setActive(Math.min(at + 1, found.length - 1));
          else if (event.key === "ArrowUp") setActive(Math.max(at - 1, 0));
          else if (event.key === "Enter") choose(found[at]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-choices" role="listbox" aria-label={t.palette.title} className="max-h-[56vh] min-h-24 overflow-auto p-2">
        {found.map((one, index) => (
          <li
            key={one.id}
            id={`choice-${index}`}
            role="option"
            aria-selected={index === at}
            ref={index === at ? (node) => node?.scrollIntoView({ block: "nearest" }) : undefined}
            onClick={() => choose(one)}
            onMouseMove={() => setActive(index)}
            className={classes("flex items-center gap-3 rounded-md px-2 py-1.5", index === at && "bg-hover")}
          >
            <span className="w-16 shrink-0 truncate text-xs text-muted">{index === 0 || found[index - 1]?.group !== one.group ? one.group : ""}</span>
            <span className="min-w-0 flex-1 truncate">{one.label}</span>
            {one.hint && <Kbd>{one.hint}</Kbd>}
          </li>
        ))}
        {found.length === 0 && <li role="presentation" className="p-3 text-muted">{t.palette.empty}</li>}
      </ul>
    </div>
  );
}
