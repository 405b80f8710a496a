// For somebody without a login, or whose login has ended: they stay on the address they came to.
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { problem } from "../api/client";
import { keys } from "../api/queries";
import markUrl from "../mark.svg";
import { useText } from "../text";
import { Button, Command, Field, inputClass } from "../ui/basics";

export function Login({ expired }: { expired: boolean }) {
  const t = useText();
  const client = useQueryClient();
  const [token, setToken] = useState("");
  const [failed, setFailed] = useState("");
  const [busy, setBusy] = useState(false);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setFailed("");
    try {
      const answer = await fetch("/login", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ token: token.trim() }),
      });
      if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
      await client.resetQueries({ queryKey: keys.me });
      await client.invalidateQueries();
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <main className="mx-auto flex max-w-md flex-col gap-4 px-6 pt-24">
      <img src={markUrl} alt="" width={32} height={32} />
      <h1 className="text-xl font-semibold">{t.login.title}</h1>
      <p className="text-muted">{expired ? t.login.expired : t.login.intro}</p>
      <div>
        <p>{t.login.how.replaceAll("`", "")}</p>
        <Command>contextbase login</Command>
      </div>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <Field label={t.login.paste}>
          <input className={inputClass} type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} placeholder="cb_…" />
        </Field>
        {failed && <p role="alert" className="text-refused">{failed}</p>}
        <Button type="submit" look="primary" busy={busy} disabled={!token.trim()} className="self-start">{t.login.submit}</Button>
      </form>
    </main>
  );
}
