// One item: three sides of each contested place, the result, and the decision.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { ApiError, api, body, type ReviewDetail } from "../api/client";
import { keys, reviewQuery } from "../api/queries";
import { undoCommit } from "../projects/changes";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Age, Button, Chip, classes, Problem, Skeleton } from "../ui/basics";
import { shortName } from "../ui/format";
import { tell, tellError } from "../ui/toasts";
import { placesOf, resolutionOf, type Resolution, resultOf, type Side, sideText } from "./choices";
import { ClaimChip } from "./ClaimChip";
import { Discussion } from "./Discussion";
import { SideCard } from "./SideCard";

const AGAIN_MS = 5_000;
const CodeView = lazy(() => import("../projects/CodeView"));

export function Decision({ project, id, onDecided }: { project: string; id: string; onDecided: () => void }) {
  // Who claims an item is no event: it is asked for now and then.
  const review = useQuery({ ...reviewQuery(project, id), refetchInterval: AGAIN_MS });
  if (review.isPending) return <Skeleton lines={8} />;
  if (review.error) return <Problem error={review.error} retry={() => void review.refetch()} />;
  return <Choosing key={`${review.data.ours_seq}`} project={project} detail={review.data} onDecided={onDecided} />;
}

function Choosing({ project, detail, onDecided }: { project: string; detail: ReviewDetail; onDecided: () => void }) {
  const t = useText();
  const client = useQueryClient();
  const count = placesOf(detail);
  const [chosen, setChosen] = useState<(Side | null)[]>(() => Array.from({ length: count }, () => null));
  const [at, setAt] = useState(0);
  const [edited, setEdited] = useState<string | null>(null);
  const [isEditing, setEditing] = useState(false);
  const [editStart, setEditStart] = useState(""); // what the editor began with; it keeps its own text
  const isOpen = detail.state === "open";
  const conflict = detail.by_conflict ? detail.conflicts[at] : undefined;
  const whole = { ours: detail.ours, base: detail.base, theirs: detail.theirs, suggestion: detail.suggestion?.content ?? null };
  const textOf = (side: Side) => (conflict ? sideText(conflict, side) : whole[side] === null ? null : (whole[side]?.text ?? undefined));
  const hasSuggestion = conflict ? conflict.suggestion !== null : whole.suggestion !== null;
  const sides: Side[] = ["ours", "base", "theirs", ...(hasSuggestion ? (["suggestion"] as const) : [])];
  const names: Record<Side, string> = { ours: t.review.now, base: t.review.before, theirs: t.review.proposed, suggestion: t.review.suggested };
  const resolution = resolutionOf(detail, chosen, edited);
  const result = edited ?? resultOf(detail, chosen);
  const only = chosen.every((side) => side === chosen[0]) ? chosen[0] : null;

  function choose(side: Side) {
    if (side !== "ours" && side !== "theirs" && textOf(side) == null) return; // there is nothing to take
    const next = chosen.map((one, index) => (index === at ? side : one));
    setChosen(next);
    setEdited(null);
    const open = next.findIndex((one) => one === null);
    if (open >= 0 && next[at] !== null) setAt(open);
  }

  const finish = async (message: string, seq: number | null | undefined) => {
    tell(message, { undo: seq == null ? undefined : () => undoCommit(project, seq) });
    onDecided();
    await client.invalidateQueries({ queryKey: keys.reviews(project) });
  };
  const resolve = useMutation({
    mutationFn: (wanted: Resolution) =>
      body(api.POST("/api/v1/reviews/{review_id}/resolve", { params: { path: { review_id: detail.id } }, body: { project, ...wanted, epoch: detail.epoch, ours_seq: detail.ours_seq, message: "" } })),
    onSuccess: (made) => finish(t.review.decided(detail.path), made.closed?.seq),
    onError: async (error) => {
      if (error instanceof ApiError && error.status === 409) {
        tell(t.review.moved, { isError: true });
        await client.invalidateQueries({ queryKey: keys.reviews(project) });
      } else tellError(error);
    },
  });
  const reject = useMutation({
    mutationFn: () => body(api.POST("/api/v1/reviews/{review_id}/reject", { params: { path: { review_id: detail.id } }, body: { project, reason: "" } })),
    onSuccess: () => finish(t.review.rejected(detail.path), null),
    onError: tellError,
  });
  const decide = () => (resolution ? resolve.mutate(resolution) : tell(t.review.choose));
  const startEdit = () => {
    const start = edited ?? result ?? detail.draft?.text ?? whole.theirs?.text ?? "";
    setEditStart(start);
    setEdited(start);
    setEditing(true);
  };
  const canEdit = isOpen && (detail.draft?.text != null || whole.theirs?.text != null || whole.ours?.text != null);

  const canChoose = isOpen && !isEditing;
  useShortcut("1", names.ours, () => choose("ours"), canChoose);
  useShortcut("2", names.base, () => choose("base"), canChoose);
  useShortcut("3", names.theirs, () => choose("theirs"), canChoose);
  useShortcut("4", names.suggestion, () => choose("suggestion"), canChoose && hasSuggestion);
  useShortcut("e", t.review.edit, startEdit, canEdit && !isEditing);
  useShortcut("x", t.review.reject, () => reject.mutate(), isOpen && !isEditing);
  useShortcut("Enter", t.review.use("…"), decide, isOpen && !isEditing);
  useShortcut("]", t.review.place(2, 2), () => setAt(Math.min(count - 1, at + 1)), count > 1);
  useShortcut("[", t.review.place(1, 2), () => setAt(Math.max(0, at - 1)), count > 1);

  return (
    <>
      <div className="min-h-0 flex-1 overflow-auto p-4">
        <h2 className="flex flex-wrap items-baseline gap-x-2">
          <Link to="/projects/$project/files/$" params={{ project, _splat: detail.path }} className="mono font-semibold hover:underline">{detail.path}</Link>
          <span className="text-muted">{t.review.reasons[detail.reason] ?? detail.reason} · {detail.by_conflict ? (count === 1 ? t.review.onePlace(detail.path) : t.review.places(count, detail.path)) : t.review.whole(detail.path)}</span>
        </h2>
        <p className="mt-1 flex flex-wrap items-center gap-2 text-sm text-muted">
          {t.review.by(shortName(detail.author))} · #{detail.seq} · <Age at={detail.created_at} />{detail.message && <span className="text-text">“{detail.message}”</span>}
          {isOpen && <ClaimChip project={project} detail={detail} />}
          {!isOpen && <Chip>{t.review.closed(t.review.states[detail.state])}</Chip>}
        </p>
        {count > 1 && (
          <nav aria-label={t.review.place(at + 1, count)} className="mt-3 flex flex-wrap gap-1">
            {chosen.map((side, index) => (
              <Button key={index} small look={index === at ? "primary" : "plain"} aria-current={index === at} onClick={() => setAt(index)}>{index + 1}{side ? ` · ${names[side]}` : ""}</Button>
            ))}
            <span className="self-center pl-2 text-sm text-muted">{conflict?.place.at}</span>
          </nav>
        )}
        <div className={classes("mt-3 grid gap-3", sides.length === 4 ? "lg:grid-cols-4" : "lg:grid-cols-3")} role="radiogroup" aria-label={t.review.place(at + 1, count)}>
          {sides.map((side, index) => (
            <SideCard
              key={side}
              number={index + 1}
              name={names[side]}
              note={side === "theirs" ? shortName(detail.author) : side === "ours" ? `#${detail.ours_seq}` : side === "suggestion" && detail.suggestion ? detail.suggestion.by : ""}
              text={textOf(side)}
              against={side === "base" ? null : (textOf("base") ?? null)}
              isChosen={chosen[at] === side && edited === null}
              disabled={!isOpen || (side !== "ours" && side !== "theirs" && textOf(side) == null)}
              onChoose={() => choose(side)}
            />
          ))}
        </div>
        <section className="panel mt-4 overflow-hidden" aria-label={t.review.result}>
          <header className="flex items-center gap-2 border-b bg-sunken px-3 py-1.5">
            <h3 className="font-semibold">{t.review.result}</h3>
            {edited !== null && <Chip tone="accent">{t.review.edited}</Chip>}
            {canEdit && !isEditing && <Button small className="ml-auto" keys="e" onClick={startEdit}>{t.review.edit}</Button>}
          </header>
          {isEditing ? (
            <div className="h-80">
              <Suspense fallback={<Skeleton />}>
                <CodeView editable text={editStart} path={detail.path} label={t.review.result} onChange={setEdited} onEscape={() => setEditing(false)} onSave={() => setEditing(false)} />
              </Suspense>
            </div>
          ) : result !== null ? (
            <pre className="mono max-h-80 overflow-auto px-3 py-2 whitespace-pre-wrap" tabIndex={0}>{result}</pre>
          ) : (
            <p className="px-3 py-2 text-muted">{resolution ? (only ? names[only] : "") : t.review.choose}</p>
          )}
        </section>
        <Discussion project={project} detail={detail} />
      </div>
      {isOpen && (
        <footer className="flex shrink-0 flex-wrap items-center justify-end gap-2 border-t px-4 py-2">
          <span className="mr-auto text-sm text-muted">{t.review.told}</span>
          {isEditing && <Button onClick={() => setEditing(false)} keys="Esc">{t.common.close}</Button>}
          <Button onClick={() => reject.mutate()} busy={reject.isPending} keys="x">{t.review.reject}</Button>
          <Button look="primary" busy={resolve.isPending} disabled={!resolution} onClick={decide} keys="↵">{t.review.use(edited !== null ? t.review.edited : only ? names[only] : t.review.result)}</Button>
        </footer>
      )}
    </>
  );
}
