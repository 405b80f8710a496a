// For somebody without a login, or whose login has ended: they stay on the address they came to.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { problem } from "../api/client";
import { keys, loginWaysQuery } from "../api/queries";
import markUrl from "../mark.svg";
import { useText } from "../text";
import { Button, buttonClass, classes, Command, Field, inputClass } from "../ui/basics";

export const LINK = /^#link=([\w-]+)$/;

export function Login({ expired }: { expired: boolean }) {
  const t = useText();
  const [link, setLink] = useState(() => LINK.exec(window.location.hash)?.[1]);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [token, setToken] = useState("");
  const provider = useQuery(loginWaysQuery()).data?.oidc;
  const here = window.location.pathname + window.location.search;

  function leaveLink() {
    // The link works once: it must not stay in the address bar or the history.
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
    setLink(undefined);
  }

  const passwordField = (label: string, autoComplete: string) => (
    <Field label={label}>
      <input className={inputClass} type="password" autoComplete={autoComplete} value={password} onChange={(event) => setPassword(event.target.value)} />
    </Field>
  );

  return (
    <main className="mx-auto flex max-w-md flex-col gap-4 px-6 pt-24 pb-12">
      <img src={markUrl} alt="" width={32} height={32} />
      <h1 className="text-xl font-semibold">{link ? t.login.choose : t.login.title}</h1>
      <p className="text-muted">{link ? t.login.chooseHint : expired ? t.login.expired : t.login.intro}</p>
      {link ? (
        <LoginForm submit={t.login.choose} body={{ link, password }} ready={password.length >= 10} onDone={leaveLink}>
          {passwordField(t.login.newPassword, "new-password")}
        </LoginForm>
      ) : (
        <>
          {provider && (
            <a className={classes(buttonClass(), "self-start")} href={`/login/oidc?then=${encodeURIComponent(here)}`}>{t.login.withProvider(provider)}</a>
          )}
          <LoginForm submit={t.login.submit} body={{ login_name: name.trim(), password }} ready={Boolean(name.trim() && password)}>
            <Field label={t.login.name}>
              <input className={inputClass} autoComplete="username" value={name} onChange={(event) => setName(event.target.value)} />
            </Field>
            {passwordField(t.login.password, "current-password")}
          </LoginForm>
          <div className="mt-4 border-t pt-4">
            <p>{t.login.how.replaceAll("`", "")}</p>
            <Command>contextbase login</Command>
          </div>
          <LoginForm submit={t.login.withToken} body={{ token: token.trim() }} ready={Boolean(token.trim())}>
            <Field label={t.login.paste}>
              <input className={inputClass} type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} placeholder="cb_…" />
            </Field>
          </LoginForm>
        </>
      )}
    </main>
  );
}

function LoginForm({ submit, body, ready, onDone, children }: {
  submit: string; body: Record<string, string>; ready: boolean; onDone?: () => void; children: ReactNode;
}) {
  const client = useQueryClient();
  const [failed, setFailed] = useState("");
  const [busy, setBusy] = useState(false);

  async function send(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setFailed("");
    try {
      const answer = await fetch("/login", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
      onDone?.();
      await client.resetQueries({ queryKey: keys.me });
      await client.invalidateQueries();
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <form onSubmit={send} className="flex flex-col gap-3">
      {children}
      {failed && <p role="alert" className="text-refused">{failed}</p>}
      <Button type="submit" look="primary" busy={busy} disabled={!ready} className="self-start">{submit}</Button>
    </form>
  );
}
