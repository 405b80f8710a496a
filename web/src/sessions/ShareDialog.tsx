// Whom a session is shared with: to read along, or to drive it. Taken back at once, with a way back.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Age, Avatar, Button, Field, inputClass, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { tell, tellError } from "../ui/toasts";
import { sessionKeys } from "./queries";

type Share = Schemas["SessionShareView"];
type Level = Share["level"];
const LEVELS: Level[] = ["read", "drive"];

export function ShareDialog({ session, open, onClose }: { session: string; open: boolean; onClose: () => void }) {
  const t = useText().sessions.share;
  return <Dialog title={t.title} open={open} onClose={onClose}>{open && <Shares session={session} />}</Dialog>;
}

function Shares({ session }: { session: string }) {
  const t = useText();
  const client = useQueryClient();
  const key = sessionKeys.shares(session);
  const shares = useQuery({ queryKey: key, queryFn: async ({ signal }) => (await body(api.GET("/api/v1/sessions/{session}/shares", { params: { path: { session } }, signal }))).shares });
  const put = async (user: string, level: Level) => {
    const { shares: found } = await body(api.PUT("/api/v1/sessions/{session}/shares/{user}", { params: { path: { session, user } }, body: { level } }));
    client.setQueryData(key, found);
  };
  const takeBack = useMutation({
    mutationFn: async (one: Share) => {
      await body(api.DELETE("/api/v1/sessions/{session}/shares/{user}", { params: { path: { session, user: one.user } } }));
      await client.invalidateQueries({ queryKey: key });
    },
    onSuccess: (_, one) => tell(t.sessions.share.takenBack(one.display_name), { undo: () => put(one.user, one.level) }),
    onError: tellError,
  });
  const change = useMutation({ mutationFn: ({ user, level }: { user: string; level: Level }) => put(user, level), onError: tellError });
  return (
    <div className="flex min-h-0 flex-col gap-4 overflow-auto p-4">
      <p className="text-muted">{t.sessions.share.intro}</p>
      <NewShare put={put} />
      {shares.isPending && <Skeleton lines={2} />}
      {shares.error && <Problem error={shares.error} retry={() => void shares.refetch()} />}
      {shares.data?.length === 0 && <p className="text-muted">{t.sessions.share.none}</p>}
      {shares.data && shares.data.length > 0 && (
        <ul aria-label={t.sessions.share.list} className="flex flex-col divide-y rounded-lg border">
          {shares.data.map((one) => (
            <li key={one.user} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2">
              <Avatar principal={`user:${one.user}`} size={24} />
              <span className="min-w-0 flex-1"><span className="block truncate font-medium">{one.display_name || one.user}</span><span className="block truncate text-xs text-muted">{one.user} · <Age at={one.shared_at} /></span></span>
              <select aria-label={t.sessions.share.levelOf(one.display_name || one.user)} className="h-7 rounded-md border border-line-strong bg-panel px-1.5 text-xs" value={one.level} onChange={(event) => change.mutate({ user: one.user, level: event.target.value as Level })}>
                {LEVELS.map((level) => <option key={level} value={level}>{t.sessions.share.levels[level]}</option>)}
              </select>
              <Button small look="quiet" onClick={() => takeBack.mutate(one)}>{t.sessions.share.takeBack}</Button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function NewShare({ put }: { put: (user: string, level: Level) => Promise<void> }) {
  const t = useText().sessions.share;
  const [user, setUser] = useState("");
  const [level, setLevel] = useState<Level>("read");
  const send = useMutation({ mutationFn: () => put(user.trim(), level), onSuccess: () => setUser("") });
  function submit(event: FormEvent) {
    event.preventDefault();
    send.mutate();
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-2">
      <div className="flex flex-wrap items-end gap-2">
        <div className="min-w-40 flex-1"><Field label={t.person}><input required className={inputClass} placeholder="ada-example.com" autoComplete="off" maxLength={100} value={user} onChange={(event) => setUser(event.target.value)} /></Field></div>
        <Field label={t.may}><select className={inputClass} value={level} onChange={(event) => setLevel(event.target.value as Level)}>{LEVELS.map((one) => <option key={one} value={one}>{t.levels[one]}</option>)}</select></Field>
        <Button type="submit" look="primary" busy={send.isPending} disabled={!user.trim()}>{t.share}</Button>
      </div>
      {send.error ? <p role="alert" className="text-sm text-refused">{send.error.message}</p> : <p className="text-sm text-muted">{t.hints[level]}</p>}
    </form>
  );
}
