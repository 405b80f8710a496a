// Who has which role where, what each role gives, and why somebody may do something or not.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Age, Button, Chip, classes, Field, inputClass, Problem, Skeleton } from "../ui/basics";
import { Table } from "../ui/table";
import { tell, tellError } from "../ui/toasts";
import { bindingsQuery, peopleKeys, rolesQuery } from "./queries";

type Role = Schemas["RoleView"]["role"];
type Action = Schemas["RightView"]["action"];
type Binding = Schemas["RoleBindingView"];
const ROLES: Role[] = ["member", "project_admin", "app_admin", "platform_admin"];
const ACTIONS: Action[] = ["use_app", "manage_kb", "manage_agentconfig", "browse_files", "edit_files", "open_terminal", "read", "write", "admin"];
const route = getRouteApi("/admin/roles");

export function RolesPage() {
  const t = useText();
  const client = useQueryClient();
  const bindings = useInfiniteQuery(bindingsQuery());
  const all = bindings.data?.pages.flatMap((page) => page.bindings) ?? [];
  const refresh = () => client.invalidateQueries({ queryKey: peopleKeys.bindings });
  const grant = (user: string, role: Role, scope: string) => body(api.PUT("/api/v1/roles/bindings", { body: { user, role, scope } }));
  const revoke = useMutation({
    mutationFn: (one: Binding) => body(api.DELETE("/api/v1/roles/bindings", { params: { query: { user: one.user, role: one.role, scope: one.scope } } })),
    onSuccess: async (_, one) => {
      await refresh();
      tell(t.people.revokedToast(one.user, one.role), { undo: async () => { await grant(one.user, one.role, one.scope); await refresh(); } });
    },
    onError: tellError,
  });
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-8 p-4">
      <section>
        <h2 className="text-lg font-semibold">{t.people.bindings}</h2>
        <p className="mb-3 text-muted">{t.people.bindingsHint}</p>
        {bindings.isPending && <Skeleton lines={4} />}
        {bindings.error && <Problem error={bindings.error} retry={() => void bindings.refetch()} />}
        {bindings.isSuccess && all.length === 0 && <p className="mb-3">{t.people.noBindings}</p>}
        {all.length > 0 && (
          <Table
            label={t.people.bindings}
            head={[t.people.person, t.people.role, t.people.scope, t.people.granted, <span key="r" className="sr-only">{t.people.revoke}</span>]}
            rows={all.map((one) => ({
              key: `${one.user} ${one.role} ${one.scope}`,
              cells: [one.user, <Chip key="r" tone={one.role === "member" ? "plain" : "accent"}>{one.role}</Chip>, <code key="s" className="mono break-all">{one.scope}</code>, <span key="g">{one.granted_by} · <Age at={one.granted_at} /></span>, <Button key="x" small look="quiet" onClick={() => revoke.mutate(one)}>{t.people.revoke}</Button>],
            }))}
          />
        )}
        {bindings.hasNextPage && <Button className="mt-3" onClick={() => void bindings.fetchNextPage()}>{t.common.more}</Button>}
        <NewBinding grant={async (...values) => { const done = await grant(...values); await refresh(); tell(done.changed ? t.people.grantedToast(values[0], values[1]) : t.people.already); }} />
      </section>
      <Explain />
      <Given />
    </div>
  );
}

function NewBinding({ grant }: { grant: (user: string, role: Role, scope: string) => Promise<void> }) {
  const t = useText().people;
  const [values, setValues] = useState({ user: "", role: "member" as Role, scope: "platform" });
  const send = useMutation({ mutationFn: () => grant(values.user.trim(), values.role, values.scope.trim()), onError: tellError });
  function submit(event: FormEvent) {
    event.preventDefault();
    send.mutate();
  }
  return (
    <form onSubmit={submit} className="mt-3 flex flex-wrap items-end gap-2">
      <div className="min-w-32 flex-1"><Field label={t.person}><input required className={inputClass} placeholder="ann" value={values.user} onChange={(event) => setValues({ ...values, user: event.target.value })} /></Field></div>
      <Field label={t.role}><select className={inputClass} value={values.role} onChange={(event) => setValues({ ...values, role: event.target.value as Role })}>{ROLES.map((role) => <option key={role}>{role}</option>)}</select></Field>
      <div className="min-w-32 flex-1"><Field label={t.scope}><input required className={classes(inputClass, "mono")} value={values.scope} onChange={(event) => setValues({ ...values, scope: event.target.value })} /></Field></div>
      <Button type="submit" busy={send.isPending} disabled={!values.user.trim()}>{t.grant}</Button>
    </form>
  );
}

function Explain() {
  const t = useText().people;
  const navigate = useNavigate();
  const search = route.useSearch();
  const [values, setValues] = useState({ who: search.who ?? "", action: search.action ?? "use_app", scope: search.scope ?? "platform" });
  const answer = useQuery({
    queryKey: [...peopleKeys.bindings, "explain", search.who, search.action, search.scope],
    enabled: !!search.who && !!search.scope,
    queryFn: ({ signal }) => body(api.GET("/api/v1/roles/explain", { params: { query: { user: search.who ?? "", action: (search.action ?? "use_app") as Action, scope: search.scope ?? "" } }, signal })),
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    void navigate({ to: "/admin/roles", search: { who: values.who.trim(), action: values.action, scope: values.scope.trim() } });
  }
  return (
    <section>
      <h2 className="text-lg font-semibold">{t.explain}</h2>
      <p className="mb-2 text-muted">{t.explainHint}</p>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <div className="min-w-32 flex-1"><Field label={t.person}><input required className={inputClass} placeholder="ann" value={values.who} onChange={(event) => setValues({ ...values, who: event.target.value })} /></Field></div>
        <Field label={t.action}><select className={inputClass} value={values.action} onChange={(event) => setValues({ ...values, action: event.target.value })}>{ACTIONS.map((action) => <option key={action}>{action}</option>)}</select></Field>
        <div className="min-w-32 flex-1"><Field label={t.scope}><input required className={classes(inputClass, "mono")} placeholder="project:notes" value={values.scope} onChange={(event) => setValues({ ...values, scope: event.target.value })} /></Field></div>
        <Button type="submit">{t.explainIt}</Button>
      </form>
      {answer.error && <p role="alert" className="mt-2 text-refused">{answer.error.message}</p>}
      {answer.data && <p className="mt-3 flex flex-wrap items-center gap-2" data-testid="explained"><Chip tone={answer.data.allowed ? "written" : "refused"} dot>{answer.data.allowed ? t.allowed : t.denied}</Chip><span>{answer.data.reason}</span></p>}
    </section>
  );
}

function Given() {
  const t = useText().people;
  const roles = useQuery(rolesQuery()).data ?? [];
  if (roles.length === 0) return null;
  return (
    <section>
      <h2 className="mb-3 text-lg font-semibold">{t.gives}</h2>
      <Table label={t.gives} head={[t.role, t.scope, t.rights]} rows={roles.map((one) => ({ key: `${one.role} ${one.scope}`, cells: [one.role, <span key="s" className="mono">{one.scope}</span>, <span key="g" className="flex flex-wrap gap-1">{one.gives.map((each) => <Chip key={each}>{each}</Chip>)}{one.gives.length === 0 && "–"}</span>] }))} />
    </section>
  );
}
