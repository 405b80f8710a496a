// One app: what it is, its configuration and where each value is from, knowledge, manifests, secrets, who sees it.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { projectsQuery } from "../api/queries";
import { useText } from "../text";
import { Button, buttonClass, Chip, classes, Field, inputClass, PageHeader, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { formatMoment } from "../ui/format";
import { TabBar } from "../ui/tabBar";
import { tell, tellError } from "../ui/toasts";
import { AppIcon } from "./AppIcon";
import { ConfigTab } from "./ConfigTab";
import { KnowledgeTab } from "./KnowledgeTab";
import { ManifestsTab } from "./ManifestsTab";
import { type App, appKeys, appProjectsQuery, appQuery, storeQuery } from "./queries";
import { SecretsTab } from "./SecretsTab";
import { APP_TABS } from "./tabs";
import { VisibilityTab } from "./VisibilityTab";

const route = getRouteApi("/store/$app");

export function AppPage() {
  const t = useText();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { app: name } = route.useParams();
  const search = route.useSearch();
  const app = useQuery(appQuery(name));
  const entry = useQuery(storeQuery()).data?.find((one) => one.name === name);
  const projects = useQuery({ ...appProjectsQuery(name), enabled: app.isSuccess }).data ?? [];
  const [isEditing, setEditing] = useState(false);
  const change = useMutation({
    mutationFn: (changes: Partial<Schemas["AppChangeBody"]>) => body(api.PATCH("/api/v1/apps/{app}", { params: { path: { app: name } }, body: changes as Schemas["AppChangeBody"] })),
    onSuccess: async (changed) => {
      client.setQueryData(appKeys.one(name), changed);
      await client.invalidateQueries({ queryKey: appKeys.store });
    },
  });
  if (app.isPending) return <Skeleton lines={6} />;
  if (app.error) return <Problem error={app.error} retry={() => void app.refetch()} />;
  const manages = app.data.visibility !== null;
  const tab = search.tab ?? "overview";
  const tabs = APP_TABS.filter((one) => manages || one !== "visibility");
  const setEnabled = (enabled: boolean) =>
    change.mutate({ enabled }, {
      onSuccess: () => tell(enabled ? t.apps.wasEnabled(app.data.title) : t.apps.wasDisabled(app.data.title), { undo: async () => void (await change.mutateAsync({ enabled: !enabled })) }),
      onError: tellError,
    });
  const part = { app: name, project: search.project, manages };
  return (
    <>
      <PageHeader
        title={<span className="flex items-center gap-2"><Link to="/store" className="hidden text-muted hover:text-text sm:inline">{t.apps.title}</Link><span aria-hidden className="hidden text-muted sm:inline">/</span><AppIcon name={name} icon={app.data.icon} size={22} /><span className="truncate">{app.data.title}</span></span>}
        chips={<Chip tone={app.data.enabled ? "written" : "waiting"} dot>{app.data.enabled ? t.apps.enabled : t.apps.disabled}</Chip>}
      >
        {manages && <Button busy={change.isPending} onClick={() => setEnabled(!app.data.enabled)}>{app.data.enabled ? t.apps.disable : t.apps.enable}</Button>}
        {entry?.can_use && <Link to="/sessions/new" search={{ app: name }} className={buttonClass("primary")}>{t.apps.start}</Link>}
      </PageHeader>
      <TabBar label={t.apps.tabs} open={tab} className="items-center border-b">
        {tabs.map((one) => (
          <Link key={one} to="/store/$app" params={{ app: name }} search={{ ...search, tab: one === "overview" ? undefined : one }} activeOptions={{ explicitUndefined: true }} className={classes("-mb-px border-b-2 px-2 py-2 text-sm whitespace-nowrap", one === tab ? "border-text font-medium" : "border-transparent text-muted hover:text-text")}>{t.apps[one]}</Link>
        ))}
        {projects.length > 0 && (
          <select aria-label={t.apps.project} className="ml-auto h-7 rounded-md border border-line-strong bg-panel px-1.5 text-xs" value={search.project ?? ""} onChange={(event) => void navigate({ to: "/store/$app", params: { app: name }, search: { ...search, project: event.target.value || undefined }, replace: true })}>
            <option value="">{t.apps.project}: {t.apps.defaultProject}</option>
            {projects.map((one) => <option key={one.name} value={one.name}>{t.apps.project}: {one.name}</option>)}
          </select>
        )}
      </TabBar>
      <div className="min-h-0 flex-1 overflow-auto" tabIndex={0} role="region" aria-label={app.data.title}>
        <div className="mx-auto max-w-4xl p-4">
          {tab === "overview" && <Overview app={app.data} reason={entry} edit={manages ? () => setEditing(true) : undefined} />}
          {tab === "config" && <ConfigTab {...part} />}
          {tab === "knowledge" && <KnowledgeTab {...part} />}
          {tab === "manifests" && <ManifestsTab app={name} />}
          {tab === "secrets" && <SecretsTab {...part} />}
          {tab === "visibility" && app.data.visibility && <VisibilityTab key={app.data.updated_at} app={name} visibility={app.data.visibility} />}
        </div>
      </div>
      <Dialog title={t.apps.edit} open={isEditing} onClose={() => setEditing(false)}>
        <Describe app={app.data} busy={change.isPending} error={change.error} save={(changes) => change.mutate(changes, { onSuccess: () => { setEditing(false); tell(t.apps.saved); } })} />
      </Dialog>
    </>
  );
}

function Overview({ app, reason, edit }: { app: App; reason?: { can_use: boolean; view_reason: string; use_reason: string }; edit?: () => void }) {
  const t = useText();
  const tree = useQuery(projectsQuery()).data?.find((one) => one.id === app.project_id);
  const row = (label: string, value: React.ReactNode) => <><dt className="text-muted">{label}</dt><dd className="min-w-0 break-words">{value}</dd></>;
  return (
    <div className="flex flex-col gap-4">
      {app.description ? <p className="max-w-prose break-words whitespace-pre-wrap">{app.description}</p> : <p className="text-muted">{t.apps.description} …</p>}
      <dl className="panel grid grid-cols-[auto_1fr] gap-x-6 gap-y-2 p-4">
        {row(t.apps.name, <span className="mono">{app.name}</span>)}
        {row(t.apps.owner, app.owner)}
        {reason && row(t.apps.seen, reason.view_reason)}
        {reason && row(t.apps.used, <span className="flex flex-wrap items-center gap-2"><Chip tone={reason.can_use ? "written" : "waiting"} dot>{reason.can_use ? t.apps.canUse : t.apps.canNotUse}</Chip>{reason.use_reason}</span>)}
        {tree && row(t.apps.tree, <Link to="/projects/$project" params={{ project: tree.name }} className="link mono">{tree.name}</Link>)}
        {row(t.apps.registered, formatMoment(app.created_at))}
        {row(t.apps.changed, formatMoment(app.updated_at))}
      </dl>
      {edit && <Button className="self-start" onClick={edit}>{t.apps.edit}</Button>}
    </div>
  );
}

function Describe({ app, save, busy, error }: { app: App; save: (changes: Partial<Schemas["AppChangeBody"]>) => void; busy: boolean; error: Error | null }) {
  const t = useText();
  const [values, setValues] = useState({ title: app.title, description: app.description, icon: app.icon, owner: app.owner });
  function submit(event: FormEvent) {
    event.preventDefault();
    // An owner that stays is not sent: to give an app away is a right of its own.
    save({ ...values, owner: values.owner === app.owner ? undefined : values.owner });
  }
  const set = (name: keyof typeof values) => (event: { target: { value: string } }) => setValues({ ...values, [name]: event.target.value });
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 overflow-auto p-4">
      <Field label={t.apps.appTitle}><input autoFocus required maxLength={200} className={inputClass} value={values.title} onChange={set("title")} /></Field>
      <Field label={t.apps.description}><textarea maxLength={4096} rows={4} className={classes(inputClass, "h-auto py-1.5")} value={values.description} onChange={set("description")} /></Field>
      <Field label={t.apps.icon} hint={t.apps.iconHint}><input maxLength={65536} className={inputClass} value={values.icon} onChange={set("icon")} /></Field>
      <Field label={t.apps.owner}><input required maxLength={120} className={inputClass} value={values.owner} onChange={set("owner")} /></Field>
      {error && <p role="alert" className="text-refused">{error.message}</p>}
      <Button type="submit" look="primary" busy={busy} className="self-end">{t.common.save}</Button>
    </form>
  );
}
