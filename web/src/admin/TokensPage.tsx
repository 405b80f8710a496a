import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { projectsQuery } from "../api/queries";
import { useText } from "../text";
import { Age, Button, Chip, classes, Empty, Field, inputClass, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { formatMoment } from "../ui/format";
import { Table } from "../ui/table";
import { tell, tellError } from "../ui/toasts";

type Token = Schemas["TokenView"];
const KEY = ["tokens"];

export function TokensPage() {
  const t = useText();
  const client = useQueryClient();
  const [making, setMaking] = useState(false);
  const projects = useQuery(projectsQuery()).data ?? [];
  const tokens = useInfiniteQuery({
    queryKey: KEY,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ signal, pageParam }) => body(api.GET("/api/v1/tokens", { params: { query: { before: pageParam, limit: 100 } }, signal })),
    getNextPageParam: (last) => last.next_before ?? undefined,
  });
  const revoke = useMutation({
    mutationFn: (token: Token) => body(api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: token.id } } })),
    onSuccess: (_, token) => {
      tell(t.tokens.revokedToast(token.principal));
      void client.invalidateQueries({ queryKey: KEY });
    },
    onError: tellError,
  });
  const all = tokens.data?.pages.flatMap((page) => page.tokens) ?? [];
  const placeOf = (token: Token) => (token.project_id ? `${projects.find((one) => one.id === token.project_id)?.name ?? token.project_id}${token.path ? `/${token.path}` : ""}` : t.tokens.any);
  return (
    <div className="mx-auto max-w-5xl p-4">
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <p className="text-muted">{t.tokens.intro}</p>
        <Button look="primary" className="ml-auto" onClick={() => setMaking(true)}>{t.tokens.create}</Button>
      </div>
      {tokens.isPending && <Skeleton lines={6} />}
      {tokens.error && <Problem error={tokens.error} retry={() => void tokens.refetch()} />}
      {tokens.isSuccess && all.length === 0 && <Empty title={t.tokens.empty} />}
      {all.length > 0 && (
        <Table
          label={t.tokens.title}
          head={[t.tokens.name, t.tokens.actions, t.tokens.project, t.tokens.made, t.tokens.expires, <span key="r" className="sr-only">{t.tokens.revoke}</span>]}
          rows={all.map((token) => ({
            key: token.id,
            cells: [
              <span key="p"><span className="font-medium">{token.kind}:{token.principal}</span>{token.name !== token.principal && <span className="block text-xs text-muted">{token.name}</span>}</span>,
              token.actions.join(", "),
              placeOf(token),
              <Age key="c" at={token.created_at} />,
              <time key="e" dateTime={token.expires_at}>{formatMoment(token.expires_at)}</time>,
              token.revoked_at ? <Chip key="r">{t.tokens.revoked}</Chip> : new Date(token.expires_at) < new Date() ? <Chip key="r">{t.tokens.expired}</Chip> : <Button key="r" small look="danger" onClick={() => revoke.mutate(token)}>{t.tokens.revoke}</Button>,
            ],
          }))}
        />
      )}
      {tokens.hasNextPage && <Button className="mt-3" onClick={() => void tokens.fetchNextPage()}>{t.common.more}</Button>}
      <Dialog title={t.tokens.create} open={making} onClose={() => setMaking(false)}><NewToken onMade={() => void client.invalidateQueries({ queryKey: KEY })} /></Dialog>
    </div>
  );
}

function NewToken({ onMade }: { onMade: () => void }) {
  const t = useText();
  const projects = useQuery(projectsQuery()).data ?? [];
  const [values, setValues] = useState({ principal: "", kind: "agent" as "user" | "agent" | "adapter", actions: ["read", "write"] as ("read" | "write" | "admin")[], days: 90, project: "" });
  const make = useMutation({
    mutationFn: () => body(api.POST("/api/v1/tokens", { body: { ...values, name: "", project: values.project || null } })),
    onSuccess: onMade,
  });
  if (make.data)
    return (
      <div className="flex flex-col gap-3 p-4">
        <p>{t.tokens.created}</p>
        <code className="mono rounded-md border bg-sunken p-3 break-all" data-testid="secret">{make.data.secret}</code>
        <Button look="primary" className="self-end" onClick={() => void navigator.clipboard.writeText(make.data.secret).then(() => tell(t.common.copied), tellError)}>{t.common.copy}</Button>
      </div>
    );
  function submit(event: FormEvent) {
    event.preventDefault();
    make.mutate();
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 overflow-auto p-4">
      <Field label={t.tokens.name}><input autoFocus required className={inputClass} value={values.principal} onChange={(event) => setValues({ ...values, principal: event.target.value })} /></Field>
      <div className="grid grid-cols-2 gap-4">
        <Field label={t.tokens.kind}>
          <select className={inputClass} value={values.kind} onChange={(event) => setValues({ ...values, kind: event.target.value as typeof values.kind })}>{["agent", "user", "adapter"].map((kind) => <option key={kind}>{kind}</option>)}</select>
        </Field>
        <Field label={t.tokens.days}><input type="number" min={1} max={3650} className={inputClass} value={values.days} onChange={(event) => setValues({ ...values, days: Number(event.target.value) })} /></Field>
      </div>
      <Field label={t.tokens.project}>
        <select className={inputClass} value={values.project} onChange={(event) => setValues({ ...values, project: event.target.value })}>
          <option value="">{t.tokens.any}</option>
          {projects.map((one) => <option key={one.id} value={one.name}>{one.name}</option>)}
        </select>
      </Field>
      <fieldset className="flex gap-4">
        <legend className="mb-1 text-sm font-medium">{t.tokens.actions}</legend>
        {(["read", "write", "admin"] as const).map((action) => (
          <label key={action} className="flex items-center gap-1.5">
            <input type="checkbox" className="accent-[var(--accent)]" checked={values.actions.includes(action)} onChange={(event) => setValues({ ...values, actions: event.target.checked ? [...values.actions, action] : values.actions.filter((one) => one !== action) })} />
            {action}
          </label>
        ))}
      </fieldset>
      {make.error && <p role="alert" className="text-refused">{make.error.message}</p>}
      <Button type="submit" look="primary" className={classes("self-end")} busy={make.isPending} disabled={!values.principal || values.actions.length === 0}>{t.common.create}</Button>
    </form>
  );
}
