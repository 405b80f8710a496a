// What became of a run's changes: how many were written, merged, wait or were refused, and each file with its word.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, body } from "../api/client";
import { useText } from "../text";
import { Button, buttonClass, Chip, classes, Outcome, type Tone } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { tell, tellError } from "../ui/toasts";
import type { Landing } from "./parts";
import { sessionKeys } from "./queries";

const COUNTED: { status: string; tone: Tone; color: string }[] = [
  { status: "written", tone: "written", color: "text-written" },
  { status: "merged", tone: "merged", color: "text-merged" },
  { status: "in_review", tone: "waiting", color: "text-waiting" },
  { status: "refused", tone: "refused", color: "text-refused" },
];

/** In the order of the figures; others after them. */
const rank = (status: string) => (COUNTED.findIndex((one) => one.status === status) + 9) % 9;

/** The four figures that say at a glance how it went. */
export function LandingCounts({ counts }: { counts: Record<string, number> }) {
  const t = useText().outcome as unknown as Record<string, string>;
  return (
    <dl className="grid grid-cols-4 gap-2">
      {COUNTED.map(({ status, color }) => (
        <div key={status} className="flex flex-col rounded-lg border px-2.5 py-1.5">
          <dd className={classes("order-1 text-lg font-semibold tabular", counts[status] ? color : "text-muted")}>{counts[status] ?? 0}</dd>
          <dt className="order-2 truncate text-xs text-muted">{t[status]}</dt>
        </div>
      ))}
    </dl>
  );
}

export function LandedPaths({ landing, project, onOpenFile }: { landing: Landing; project: string; onOpenFile?: (path: string) => void }) {
  const { review, sessions: { landing: t } } = useText();
  const [all, setAll] = useState(false);
  const shown = all ? landing.paths : landing.paths.slice(0, 8);
  const word = (status: string) => (status === "uncommitted" ? <Chip tone="waiting">{t.uncommitted}</Chip> : status === "discarded" ? <Chip>{t.discarded}</Chip> : <Outcome what={status} />);
  return (
    <ul className="flex flex-col">
      {shown.map((one) => (
        <li key={one.path + one.status} className="flex min-h-7 items-center gap-2">
          <span className="flex w-20 shrink-0">{word(one.status)}</span>
          {onOpenFile ? <button type="button" className="mono max-w-[65%] shrink-0 truncate text-left hover:underline" title={one.path} onClick={() => onOpenFile(one.path)}>{one.path}</button> : <span className="mono max-w-[65%] shrink-0 truncate" title={one.path}>{one.path}</span>}
          <span className="ml-auto flex min-w-0 items-center gap-2">
            {one.reason && <span className="truncate text-sm text-muted" title={review.reasons[one.reason] ?? one.reason}>{review.reasons[one.reason] ?? one.reason}</span>}
            {one.review_id && <Link to="/review" search={{ item: `${project}/${one.review_id}` }} className={buttonClass("plain", true)}>{t.review}</Link>}
          </span>
        </li>
      ))}
      {landing.paths.length > shown.length && <li><button type="button" className="link text-sm" onClick={() => setAll(true)}>{t.more(landing.paths.length - shown.length)}</button></li>}
    </ul>
  );
}

export const waits = (landing: Landing) => landing.paths.some((one) => one.status === "uncommitted") || landing.state === "waits";

/** Commit or throw away what finished runs left in the session's folder. */
export function WaitingActions({ session, because }: { session: string; because?: string | null }) {
  const t = useText();
  const client = useQueryClient();
  const [asks, setAsks] = useState(false);
  const settled = () => {
    void client.invalidateQueries({ queryKey: sessionKeys.one(session) });
    void client.invalidateQueries({ queryKey: ["chat", session] });
  };
  const land = useMutation({ mutationFn: () => body(api.POST("/api/v1/sessions/{session}/land", { params: { path: { session } } })), onSuccess: () => { tell(t.sessions.landing.didLand); settled(); }, onError: tellError });
  const discard = useMutation({ mutationFn: () => body(api.POST("/api/v1/sessions/{session}/discard", { params: { path: { session } } })), onSuccess: () => { setAsks(false); tell(t.sessions.landing.didDiscard); settled(); }, onError: tellError });
  if (land.isSuccess || discard.isSuccess) return null;
  return (
    <div className="flex flex-wrap items-center gap-2">
      <span className="min-w-0 flex-1 text-sm text-muted">{because ?? t.sessions.landing.waits}</span>
      <Button small busy={discard.isPending} onClick={() => setAsks(true)}>{t.sessions.landing.discard}</Button>
      <Button small look="primary" busy={land.isPending} onClick={() => land.mutate()}>{t.sessions.landing.land}</Button>
      <Dialog title={t.sessions.landing.discardTitle} open={asks} onClose={() => setAsks(false)}>
        <div className="flex flex-col gap-4 p-4">
          <p className="text-muted">{t.sessions.landing.discardHint}</p>
          <Button look="danger" className="self-end" busy={discard.isPending} onClick={() => discard.mutate()}>{t.sessions.landing.discard}</Button>
        </div>
      </Dialog>
    </div>
  );
}

export function LandingCard({ landing, project, session, isLatest, onOpenFile }: { landing: Landing; project: string; session: string; isLatest: boolean; onOpenFile?: (path: string) => void }) {
  const t = useText();
  if (landing.paths.length === 0 && !landing.held_back) return null;
  return (
    <section aria-label={t.sessions.landing.title} className="rounded-lg border px-3 py-2" data-testid="landing">
      <div className="mb-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-sm">
        {Object.entries(landing.counts).filter(([, count]) => count > 0).sort(([a], [b]) => rank(a) - rank(b)).map(([status, count]) => (
          <Chip key={status} tone={COUNTED.find((one) => one.status === status)?.tone ?? "waiting"}>{count} {(t.outcome as unknown as Record<string, string>)[status] ?? (status === "uncommitted" ? t.sessions.landing.uncommitted : status)}</Chip>
        ))}
        {landing.seq != null && <Link to="/projects/$project/compare" params={{ project }} search={{ old: String(Math.max(0, landing.seq - 1)), new: String(landing.seq) }} className="link ml-auto text-sm">{t.sessions.landing.landed(landing.seq)}</Link>}
      </div>
      <LandedPaths landing={landing} project={project} onOpenFile={onOpenFile} />
      {landing.held_back > 0 && <p className="text-sm text-waiting">{t.sessions.landing.heldBack(landing.held_back)}</p>}
      {isLatest && waits(landing) && <WaitingActions session={session} because={landing.because} />}
    </section>
  );
}
