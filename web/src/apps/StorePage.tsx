// The apps that the reader may see, whether they may use each, and why not.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, body } from "../api/client";
import { meQuery } from "../api/queries";
import { useShortcut } from "../shell/keyboard";
import { matches } from "../shell/matching";
import { useText } from "../text";
import { Button, buttonClass, Chip, classes, Command, Empty, Field, inputClass, PageHeader, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { useListKeys } from "../ui/list";
import { tell } from "../ui/toasts";
import { AppIcon } from "./AppIcon";
import { appKeys, type StoreEntry, storeQuery } from "./queries";

const route = getRouteApi("/store");

export function StorePage() {
  const t = useText();
  const navigate = useNavigate();
  const search = route.useSearch();
  const isAdmin = useQuery(meQuery()).data?.actions.includes("admin") ?? false;
  const store = useQuery(storeQuery());
  const found = (store.data ?? []).filter((one) => matches(`${one.name} ${one.title} ${one.description}`, search.q ?? ""));
  const list = useListKeys(found.length, (index) => {
    const one = found[index];
    if (one) void navigate({ to: "/store/$app", params: { app: one.name } });
  });
  const setNew = (open: boolean) => void navigate({ to: "/store", search: { ...search, new: open || undefined }, replace: true });
  useShortcut("n", t.apps.new, () => setNew(true), isAdmin);
  return (
    <>
      <PageHeader title={t.apps.title} chips={store.data && <Chip>{t.apps.count(store.data.length)}</Chip>}>
        {isAdmin && <Button look={store.data?.length === 0 ? "primary" : "plain"} keys="n" onClick={() => setNew(true)}>{t.apps.new}</Button>}
      </PageHeader>
      <div className="min-h-0 flex-1 overflow-auto">
        {store.isPending && <Skeleton lines={6} />}
        {store.error && <Problem error={store.error} retry={() => void store.refetch()} />}
        {store.data?.length === 0 && <Empty title={t.apps.empty}>{isAdmin ? <>{t.apps.emptyAdmin}<Command>contextbase app init helper --title Helper</Command></> : t.apps.emptyHint}</Empty>}
        {!!store.data?.length && (
          <div className="mx-auto max-w-5xl p-4">
            {store.data.length > 6 && <input className={classes(inputClass, "mb-3")} type="search" aria-label={t.apps.filter} placeholder={t.apps.filter} value={search.q ?? ""} onChange={(event) => void navigate({ to: "/store", search: { ...search, q: event.target.value || undefined }, replace: true })} />}
            <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3" {...list.props}>
              {found.map((app, index) => <li key={app.name} className="min-w-0"><Card app={app} isActive={index === list.active} /></li>)}
            </ul>
            {found.length === 0 && <p className="p-3 text-muted">{t.apps.noneMatch}</p>}
          </div>
        )}
      </div>
      <Dialog title={t.apps.new} open={(search.new ?? false) && isAdmin} onClose={() => setNew(false)}><NewApp /></Dialog>
    </>
  );
}

function Card({ app, isActive }: { app: StoreEntry; isActive: boolean }) {
  const t = useText().apps;
  return (
    <article className={classes("panel flex h-full flex-col gap-3 p-4", isActive && "!border-accent")} aria-label={app.title}>
      <div className="flex items-start gap-3">
        <AppIcon name={app.name} icon={app.icon} />
        <div className="min-w-0 flex-1">
          <h2 className="truncate font-semibold"><Link to="/store/$app" params={{ app: app.name }} className="hover:underline">{app.title}</Link></h2>
          <p className="mono truncate text-xs text-muted">{app.name}</p>
        </div>
        <Chip tone={app.can_use ? "written" : "waiting"} dot>{app.can_use ? t.canUse : t.canNotUse}</Chip>
      </div>
      {app.description && <p className="line-clamp-3 break-words">{app.description}</p>}
      <dl className="mt-auto grid grid-cols-[auto_1fr] gap-x-2 gap-y-0.5 text-xs text-muted">
        <dt>{t.seen}:</dt><dd className="min-w-0 break-words">{app.view_reason}</dd>
        {!app.can_use && <><dt>{t.canNotUse}:</dt><dd className="min-w-0 break-words text-waiting">{app.use_reason}</dd></>}
      </dl>
      <div className="flex flex-wrap gap-2">
        {app.can_use && <Link to="/sessions/new" search={{ app: app.name }} className={buttonClass("primary", true)}>{t.start}</Link>}
        <Link to="/store/$app" params={{ app: app.name }} className={buttonClass("plain", true)}>{t.open}</Link>
      </div>
    </article>
  );
}

function NewApp() {
  const t = useText();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [values, setValues] = useState({ name: "", title: "", description: "", icon: "" });
  const create = useMutation({
    mutationFn: () => body(api.POST("/api/v1/apps", { body: values })),
    onSuccess: async (app) => {
      await client.invalidateQueries({ queryKey: appKeys.store });
      tell(t.apps.created(app.name));
      await navigate({ to: "/store/$app", params: { app: app.name }, search: { tab: "visibility" } });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    create.mutate();
  }
  const set = (name: keyof typeof values) => (event: { target: { value: string } }) => setValues({ ...values, [name]: event.target.value });
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 overflow-auto p-4">
      <Field label={t.apps.name} hint={t.apps.nameHint}><input autoFocus required pattern="[a-z0-9][a-z0-9._\-]{0,49}" className={classes(inputClass, "mono")} value={values.name} onChange={set("name")} /></Field>
      <Field label={t.apps.appTitle}><input maxLength={200} className={inputClass} value={values.title} onChange={set("title")} /></Field>
      <Field label={t.apps.description}><textarea maxLength={4096} rows={3} className={classes(inputClass, "h-auto py-1.5")} value={values.description} onChange={set("description")} /></Field>
      <Field label={t.apps.icon} hint={t.apps.iconHint}><input maxLength={65536} className={inputClass} value={values.icon} onChange={set("icon")} /></Field>
      {create.error && <p role="alert" className="text-refused">{create.error.message}</p>}
      <Button type="submit" look="primary" busy={create.isPending} disabled={!values.name} className="self-end">{t.common.create}</Button>
    </form>
  );
}
