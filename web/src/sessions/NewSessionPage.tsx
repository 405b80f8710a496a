// A session that is not there yet: it is made with its first message, so that nothing empty is left behind.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { PanelLeft } from "lucide-react";
import { useState } from "react";
import { projectsQuery } from "../api/queries";
import { AppIcon } from "../apps/AppIcon";
import { type StoreEntry, storeQuery } from "../apps/queries";
import { useText } from "../text";
import { buttonClass, Empty, Field, IconButton, inputClass, Problem, Skeleton } from "../ui/basics";
import { addToDraft, Composer } from "./Composer";
import { type Profile, PROFILES, providerName } from "./profiles";
import { agentsQuery, createSession, sessionKeys } from "./queries";
import { useHistorySheet } from "./SessionsLayout";
import { giveFirstMessage } from "./firstMessage";

const route = getRouteApi("/sessions/new");
const LANDS = ["auto", "after_review", "never"] as const;
const DRAFT = "new";

export function NewSessionPage() {
  const t = useText();
  const openHistory = useHistorySheet();
  const navigate = useNavigate();
  const client = useQueryClient();
  const search = route.useSearch();
  const projects = useQuery(projectsQuery());
  const agents = useQuery(agentsQuery());
  const [chosenProvider, setProvider] = useState<string>();
  const [profile, setProfile] = useState<Profile>("default");
  const [land, setLand] = useState<(typeof LANDS)[number]>("auto");
  const kept = localStorage.getItem("project") ?? undefined;
  const names = (projects.data ?? []).map((one) => one.name);
  const filled = projects.data?.find((one) => one.head > 0)?.name;
  const project = [search.project, kept, filled, names[0]].find((name) => name !== undefined && names.includes(name));
  const store = useQuery({ ...storeQuery(), enabled: !!search.app });
  const app = search.app ? store.data?.find((one) => one.name === search.app) : undefined;
  const provider = chosenProvider ?? agents.data?.default ?? "";
  const create = useMutation({
    mutationFn: async (text: string) => {
      const made = await createSession(app ? { app: app.name } : { project: project ?? "", provider: provider || null, land, profile });
      giveFirstMessage(made.id, text);
      return made;
    },
    onSuccess: async (made) => {
      if (!app) localStorage.setItem("project", project ?? "");
      void client.invalidateQueries({ queryKey: sessionKeys.all });
      await navigate({ to: "/sessions/$session", params: { session: made.id }, replace: true });
    },
  });
  const choose = (name: string) => void navigate({ to: "/sessions/new", search: { project: name }, replace: true });
  if (projects.error) return <Problem error={projects.error} retry={() => void projects.refetch()} />;
  return (
    <>
      <header className="flex h-12 shrink-0 items-center gap-2 border-b px-4">
        <IconButton label={t.sessions.history} className="lg:hidden" onClick={openHistory}><PanelLeft size={16} strokeWidth={1.5} /></IconButton>
        <h1 className="text-base font-semibold">{t.sessions.new}</h1>
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label={t.sessions.new}>
        <div className="mx-auto flex w-full max-w-[752px] flex-col gap-4 px-4 py-6 md:pt-[12vh]">
          {search.app ? <AppDraft entry={app} isPending={store.isPending} error={create.error} onSend={async (text) => void (await create.mutateAsync(text))} /> : projects.isPending ? <Skeleton lines={3} className="p-0" /> : names.length === 0 ? (
            <Empty title={t.projects.empty} tall={false} action={<Link to="/projects" search={{ new: true }} className={buttonClass("primary")}>{t.projects.new}</Link>}>{t.sessions.draft.noProjects}</Empty>
          ) : (
            <>
              <h2 className="text-xl font-semibold">{t.sessions.draft.title}</h2>
              <Composer name={DRAFT} project={project} agent={providerName(provider)} isWorking={false} autoFocus isInline onSend={async (text) => void (await create.mutateAsync(text))} />
              {create.error && <p role="alert" className="text-refused">{create.error.message}</p>}
              <div className="grid gap-3 sm:grid-cols-2 lg:grid-cols-4">
                <Field label={t.sessions.draft.project}>
                  <select className={inputClass} value={project} onChange={(event) => choose(event.target.value)}>{names.map((name) => <option key={name}>{name}</option>)}</select>
                </Field>
                <Field label={t.sessions.draft.provider}>
                  <select className={inputClass} value={provider} onChange={(event) => setProvider(event.target.value)}>
                    {(agents.data?.agents ?? []).map((one) => <option key={one.name} value={one.name} disabled={!one.is_installed}>{providerName(one.name)}{one.is_installed ? "" : ` (${t.sessions.draft.notInstalled})`}</option>)}
                  </select>
                </Field>
                <Field label={t.sessions.draft.land}>
                  <select className={inputClass} value={land} onChange={(event) => setLand(event.target.value as (typeof LANDS)[number])}>{LANDS.map((one) => <option key={one} value={one}>{t.sessions.draft.lands[one]}</option>)}</select>
                </Field>
                <Field label={t.sessions.composer.profile}>
                  <select className={inputClass} value={profile} onChange={(event) => setProfile(event.target.value as Profile)}>{PROFILES.map((one) => <option key={one} value={one}>{t.sessions.composer.profiles[one]}</option>)}</select>
                </Field>
              </div>
              <ul className="mt-2 grid gap-2 sm:grid-cols-2">
                {t.sessions.draft.cards.map((card) => (
                  <li key={card.title}>
                    <button type="button" className="h-full w-full rounded-lg border bg-panel px-3 py-2 text-left hover:border-line-strong hover:bg-hover" onClick={() => addToDraft(DRAFT, card.prompt)}>
                      <span className="block font-medium">{card.title}</span>
                      <span className="block text-sm text-muted">{card.prompt}</span>
                    </button>
                  </li>
                ))}
              </ul>
            </>
          )}
          {!search.app && <Link to="/sessions/example" className="flex flex-wrap items-baseline gap-x-3 rounded-lg border px-3 py-2 hover:bg-hover">
            <span className="font-medium text-accent">{t.sessions.draft.example}</span>
            <span className="text-sm text-muted">{t.sessions.draft.exampleHint}</span>
          </Link>}
        </div>
      </div>
    </>
  );
}

/** A session of an app: its configuration says what agent works, and how. */
function AppDraft({ entry, isPending, error, onSend }: { entry?: StoreEntry; isPending: boolean; error: Error | null; onSend: (text: string) => Promise<void> }) {
  const t = useText();
  if (isPending) return <Skeleton lines={3} className="p-0" />;
  if (!entry) return <Empty title={t.errors.notFound} tall={false}>{t.errors.notFoundHint}</Empty>;
  return (
    <>
      <div className="flex items-start gap-3">
        <AppIcon name={entry.name} icon={entry.icon} />
        <div className="min-w-0">
          <h2 className="text-xl font-semibold"><Link to="/store/$app" params={{ app: entry.name }} className="hover:underline">{entry.title}</Link></h2>
          {entry.description && <p className="text-muted">{entry.description}</p>}
        </div>
      </div>
      {entry.can_use ? <Composer name={`app:${entry.name}`} project={undefined} agent={entry.title} isWorking={false} autoFocus isInline onSend={onSend} /> : <p role="alert" className="text-waiting">{t.apps.canNotUse}: {entry.use_reason}</p>}
      {error && <p role="alert" className="text-refused">{error.message}</p>}
    </>
  );
}
