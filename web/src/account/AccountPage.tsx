// The reader's own account: who they are, their roles, their password, and the way out of every browser.
import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body } from "../api/client";
import { meQuery } from "../api/queries";
import { bindingsQuery } from "../people/queries";
import { logOut } from "../shell/AccountMenu";
import { useText } from "../text";
import { Avatar, Button, Chip, Field, inputClass, PageHeader, Skeleton } from "../ui/basics";
import { tell } from "../ui/toasts";

const SHORTEST = 10;

export function AccountPage() {
  const t = useText();
  const me = useQuery(meQuery()).data;
  const isPerson = me?.kind === "user" && !me.is_owner;
  const account = useQuery({
    queryKey: ["account", me?.principal],
    enabled: isPerson,
    retry: false,
    queryFn: ({ signal }) => body(api.GET("/api/v1/users/{user}", { params: { path: { user: me?.principal ?? "" } }, signal })),
  });
  const bindings = useInfiniteQuery({ ...bindingsQuery(me?.principal), enabled: isPerson && account.isSuccess });
  const roles = bindings.data?.pages.flatMap((page) => page.bindings) ?? [];
  return (
    <>
      <PageHeader title={t.account.title} />
      <div className="min-h-0 flex-1 overflow-auto">
        {!me ? <Skeleton lines={4} /> : (
          <div className="mx-auto flex max-w-2xl flex-col gap-8 p-4">
            <section className="panel flex flex-wrap items-center gap-4 p-4">
              <Avatar principal={`${me.kind}:${me.principal}`} size={40} />
              <div className="min-w-0 flex-1">
                <p className="truncate text-lg font-semibold">{account.data?.display_name || me.principal}</p>
                <p className="truncate text-sm text-muted">{me.is_owner ? t.account.owner : [account.data?.login_name, account.data?.email, account.data?.department].filter(Boolean).join(" · ") || me.kind}</p>
              </div>
              <p className="flex flex-wrap items-center gap-1 text-sm text-muted">{t.account.may}: {me.actions.map((action) => <Chip key={action}>{action}</Chip>)}</p>
            </section>
            {account.isSuccess && (
              <section>
                <h2 className="mb-2 text-lg font-semibold">{t.account.roles}</h2>
                {roles.length === 0 ? <p className="text-muted">{t.account.noRoles}</p> : <ul className="flex flex-wrap gap-2">{roles.map((one) => <li key={`${one.role} ${one.scope}`}><Chip tone="accent">{one.role} · {one.scope}</Chip></li>)}</ul>}
              </section>
            )}
            <section>
              <h2 className="mb-2 text-lg font-semibold">{t.account.password}</h2>
              {account.isSuccess ? <PasswordForm /> : <p className="max-w-prose text-muted">{t.account.tokenOnly}</p>}
            </section>
            <section>
              <h2 className="mb-1 text-lg font-semibold">{t.account.everywhere}</h2>
              <p className="mb-3 max-w-prose text-muted">{t.account.everywhereHint}</p>
              <Button look="danger" onClick={() => void logOut(true)}>{t.account.everywhere}</Button>
            </section>
          </div>
        )}
      </div>
    </>
  );
}

function PasswordForm() {
  const t = useText();
  const [values, setValues] = useState({ old: "", new: "", again: "" });
  const differs = values.again.length > 0 && values.new !== values.again;
  const change = useMutation({
    mutationFn: () => body(api.PUT("/api/v1/me/password", { body: { old: values.old, new: values.new } })),
    onSuccess: (done) => {
      setValues({ old: "", new: "", again: "" });
      tell(t.account.changed(done.ended));
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    change.mutate();
  }
  const field = (name: keyof typeof values, label: string, complete: string) => (
    <Field label={label}><input type="password" autoComplete={complete} className={inputClass} value={values[name]} onChange={(event) => setValues({ ...values, [name]: event.target.value })} /></Field>
  );
  return (
    <form onSubmit={submit} className="flex max-w-sm flex-col gap-3">
      <p className="text-muted">{t.account.passwordHint}</p>
      {field("old", t.account.old, "current-password")}
      {field("new", t.account.new, "new-password")}
      {field("again", t.account.again, "new-password")}
      {differs && <p role="alert" className="text-refused">{t.account.different}</p>}
      {change.error && <p role="alert" className="text-refused">{change.error.message}</p>}
      <Button type="submit" look="primary" className="self-start" busy={change.isPending} disabled={!values.old || values.new.length < SHORTEST || values.new !== values.again}>{t.account.change}</Button>
    </form>
  );
}
