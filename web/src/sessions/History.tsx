// The sessions of the reader, the newest first, with what each is up to.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { matches } from "../shell/matching";
import { useText } from "../text";
import { Age, Button, buttonClass, classes, inputClass, Kbd, Problem, Skeleton } from "../ui/basics";
import { shortName } from "../ui/format";
import { providerName } from "./profiles";
import { projectNamesQuery, questionsQuery, type Session, sessionsQuery, sharedSessionsQuery } from "./queries";

export function History({ active, onOpen }: { active?: string; onOpen?: () => void }) {
  const { sessions: t, apps: { appSession: app } } = useText();
  const sessions = useInfiniteQuery({ ...sessionsQuery(), refetchInterval: 15_000 });
  const shared = useQuery({ ...sharedSessionsQuery(), refetchInterval: 15_000 }).data ?? [];
  const names = useQuery(projectNamesQuery()).data;
  const questions = useQuery(questionsQuery()).data ?? [];
  const [words, setWords] = useState("");
  const all = sessions.data?.pages.flatMap((page) => page.sessions) ?? [];
  const shown = all.filter((one) => matches(`${one.title} ${names?.get(one.project_id) ?? ""}`, words));
  const sharedShown = shared.filter((one) => matches(`${one.title} ${one.owner}`, words));
  const waiting = (session: Session) => questions.filter((question) => question.session_id === session.id).length;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex shrink-0 flex-col gap-2 p-2">
        <Link to="/sessions/new" className={classes(buttonClass("plain"), "justify-start")} onClick={onOpen}>{t.new}<span className="ml-auto"><Kbd>n</Kbd></span></Link>
        {all.length > 8 && <input type="search" className={inputClass} aria-label={t.filter} placeholder={t.filter} value={words} onChange={(event) => setWords(event.target.value)} />}
      </div>
      <div className="min-h-0 flex-1 overflow-auto px-2 pb-2" tabIndex={0} role="region" aria-label={t.history}>
        {sessions.isPending && <Skeleton lines={6} className="px-2" />}
        {sessions.error && !sessions.data && <Problem error={sessions.error} retry={() => void sessions.refetch()} />}
        {sessions.data && all.length === 0 && <p className="px-2 py-3 text-muted">{t.empty}</p>}
        {all.length > 0 && shown.length === 0 && <p className="px-2 py-3 text-muted">{t.none}</p>}
        {[...byDay(shown, t), ...(sharedShown.length ? [{ label: t.share.section, sessions: sharedShown }] : [])].map((day) => (
          <section key={day.label} aria-label={day.label}>
            <h2 className="px-2 pt-3 pb-1 text-xs text-muted">{day.label}</h2>
            <ul>
              {day.sessions.map((session) => (
                <li key={session.id}>
                  <Link to="/sessions/$session" params={{ session: session.id }} onClick={onOpen} aria-current={session.id === active ? "page" : undefined} className={classes("block rounded-md px-2 py-1.5", session.id === active ? "bg-accent-soft" : "row-hover")}>
                    <span className="flex items-baseline gap-2"><span className="min-w-0 flex-1 truncate font-medium" title={session.title}>{session.title || t.untitled}</span><Age at={session.last_active_at} className="shrink-0 text-xs text-muted" /></span>
                    {waiting(session) > 0 ? <span className="block truncate text-xs text-accent">{t.list.waits(waiting(session))}</span> : <span className="block truncate text-xs text-muted">{day.label === t.share.section ? shortName(session.owner) : providerName(session.provider)} · {session.app ? `${app} ${session.app}` : (names?.get(session.project_id) ?? "…")}{session.state === "closed" && ` · ${t.closed}`}</span>}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        ))}
        {sessions.hasNextPage && <Button small look="quiet" className="mt-2 w-full" busy={sessions.isFetchingNextPage} onClick={() => void sessions.fetchNextPage()}>{t.earlier}…</Button>}
      </div>
    </div>
  );
}

function byDay(sessions: Session[], t: { today: string; yesterday: string; earlier: string }): { label: string; sessions: Session[] }[] {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days: { label: string; sessions: Session[] }[] = [t.today, t.yesterday, t.earlier].map((label) => ({ label, sessions: [] }));
  for (const session of [...sessions].sort((a, b) => b.last_active_at.localeCompare(a.last_active_at))) {
    const at = new Date(session.last_active_at).getTime();
    days[at >= midnight ? 0 : at >= midnight - 86_400_000 ? 1 : 2]?.sessions.push(session);
  }
  return days.filter((day) => day.sessions.length > 0);
}
