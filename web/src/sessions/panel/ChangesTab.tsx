// What became of the agent's work: written, merged, in review, refused, file by file; and what is not committed yet.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { ApiError, api, body } from "../../api/client";
import { DiffFile } from "../../projects/DiffView";
import { useText } from "../../text";
import { buttonClass, Empty, Problem, Skeleton } from "../../ui/basics";
import { addToDraft } from "../Composer";
import { LandedPaths, LandingCounts, WaitingActions, waits } from "../LandingCard";
import { type Landing, landingsOf } from "../parts";
import { runsQuery, sessionKeys } from "../queries";
import { folderName } from "./folder";
import type { PanelProps } from "./Panel";

type Scope = "since" | "all";

export function ChangesTab(props: PanelProps) {
  const { session, project, messages, onShow } = props;
  const t = useText();
  const [scope, setScope] = useState<Scope>("since");
  const runs = useQuery(runsQuery(session.id)).data?.runs;
  const landings = useMemo(() => {
    const told = new Map(landingsOf(messages).map((one) => [one.runId, one.landing]));
    for (const run of runs ?? []) if (run.landed) told.set(run.id, run.landed);
    return (runs ?? []).flatMap((run) => { const landing = told.get(run.id); return landing ? [{ run, landing }] : []; });
  }, [messages, runs]);
  const shown = scope === "since" ? landings.slice(0, 1) : landings;
  const isOwn = session.access === "own";
  const isIdle = session.open_runs.length === 0;
  const newest = landings[0];
  const counts = useMemo(() => sum(shown.map((one) => one.landing)), [shown]);
  const openFile = (path: string) => onShow({ panel: "preview", file: path });
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-0 flex-1 flex-col gap-4 overflow-auto p-4" tabIndex={0} role="region" aria-label={t.sessions.panelTabs.changes}>
        {landings.length > 0 && <LandingCounts counts={counts} />}
        {landings.length > 1 && (
          <select aria-label={t.sessions.changes.since} className="h-7 w-fit rounded-md border border-line-strong bg-panel px-2 text-xs" value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
            <option value="since">{t.sessions.changes.since}</option>
            <option value="all">{t.sessions.changes.all}</option>
          </select>
        )}
        {shown.map(({ run, landing }) => (
          <section key={run.id} aria-label={t.sessions.changes.run(run.number)}>
            <h2 className="mb-1 flex items-center gap-2 text-xs text-muted">{scope === "since" ? t.sessions.changes.since : t.sessions.changes.run(run.number)}{landing.seq != null && project && <Link to="/projects/$project/compare" params={{ project }} search={{ old: String(Math.max(0, landing.seq - 1)), new: String(landing.seq) }} className="link ml-auto">{t.sessions.landing.landed(landing.seq)}</Link>}</h2>
            {landing.paths.length ? <LandedPaths landing={landing} project={project ?? ""} onOpenFile={openFile} /> : <p className="text-sm text-muted">{t.sessions.landing.none}</p>}
            {landing.held_back > 0 && <p className="text-sm text-waiting">{t.sessions.landing.heldBack(landing.held_back)}</p>}
          </section>
        ))}
        {isOwn && newest && isIdle && waits(newest.landing) && <div className="rounded-lg border border-line-strong p-3"><WaitingActions session={session.id} because={newest.landing.because} /></div>}
        {isOwn && session.worker && <Uncommitted {...props} isQuiet={landings.length > 0} />}
        {landings.length === 0 && !(isOwn && session.worker) && <Empty title={t.sessions.changes.none} tall={false}>{t.sessions.changes.noneHint}</Empty>}
      </div>
      {isOwn && newest?.landing.seq != null && project && (
        <div className="flex shrink-0 items-center gap-2 border-t px-4 py-2">
          <span className="min-w-0 flex-1 text-sm text-muted">{t.sessions.landing.undoHint}</span>
          <Link to="/projects/$project/log" params={{ project }} search={{ run: newest.run.id, undo: newest.landing.seq }} className={buttonClass("plain", true)}>{t.sessions.landing.undo}</Link>
        </div>
      )}
    </div>
  );
}

function sum(landings: Landing[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const landing of landings) for (const [status, count] of Object.entries(landing.counts)) counts[status] = (counts[status] ?? 0) + count;
  return counts;
}

/** What the agent's folder has that nobody committed, as it is now. */
function Uncommitted({ session, project, isQuiet }: PanelProps & { isQuiet: boolean }) {
  const t = useText();
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const isWorking = session.open_runs.length > 0;
  const diff = useQuery({
    queryKey: [...sessionKeys.folder(session.id), "diff"],
    refetchInterval: isWorking ? 5000 : false,
    retry: false,
    queryFn: ({ signal }) => body(api.GET("/api/v1/workspaces/{workspace}/diff", { params: { path: { workspace: folderName(session) }, query: { project } }, signal })),
  });
  if (diff.isPending) return isQuiet ? null : <Skeleton />;
  if (diff.error) {
    const known = diff.error instanceof ApiError ? diff.error : null;
    if (known?.status === 404 || known?.status === 403) return isQuiet ? null : <Empty title={t.sessions.changes.none} tall={false}>{t.sessions.changes.noneHint}</Empty>;
    if (known?.status === 421) return <p className="text-sm text-muted">{t.sessions.changes.elsewhere}</p>;
    return <Problem error={diff.error} retry={() => void diff.refetch()} />;
  }
  if (diff.data.files.length === 0) return isQuiet ? null : <Empty title={t.sessions.changes.none} tall={false}>{t.sessions.changes.noneHint}</Empty>;
  return (
    <section>
      <h2 className="mb-2 text-xs text-muted">{t.sessions.changes.uncommitted} · {t.workspaces.changed(diff.data.files.length)}</h2>
      {diff.data.files.map((file) => (
        <DiffFile key={file.path} diff={file} open={!closed.has(file.path)} onToggle={() => setClosed((now) => { const next = new Set(now); if (!next.delete(file.path)) next.add(file.path); return next; })} onLine={(line, text) => addToDraft(session.id, `@${file.path}:${line}\n> ${text}\n`)} />
      ))}
    </section>
  );
}
