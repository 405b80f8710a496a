// Changing files from the page. Everything goes through the gate like everybody's changes, and offers the way back.
import { api, body, type Schemas } from "../api/client";
import { text } from "../text";
import { tell } from "../ui/toasts";

type Change = Schemas["CommitCreate"]["changes"][number];
type Commit = Schemas["CommitView"];

export async function commit(project: string, changes: Partial<Change>[], base: { seq: number; epoch?: string }, message = ""): Promise<Commit> {
  return await body(
    api.POST("/api/v1/commits", {
      body: {
        project,
        base_seq: base.seq,
        epoch: base.epoch,
        message,
        atomic: false,
        key: `web-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`,
        changes: changes.map((change) => ({ kind: "file" as const, mime: "", ...change }) as Change),
      },
    }),
  );
}

/** Takes back one commit; says so. */
export async function undoCommit(project: string, seq: number): Promise<void> {
  const made = await body(api.POST("/api/v1/history/undo", { body: { project, seqs: [seq], message: `Undo #${seq}`, dry_run: false } }));
  const t = text().outcome;
  tell(made.changes.some((change) => change.status === "in_review") ? t.undoneMore : t.undone);
}

/** Says what became of a change, and offers to take it back. Whether it was taken in at all. */
export function report(project: string, made: Commit, told?: string): boolean {
  const t = text().outcome;
  const change = made.changes[0];
  if (!change) return false;
  const path = change.result_path ?? change.path;
  if (change.status === "refused") {
    tell(t.refusedBecause(change.reason ?? change.code ?? ""), { isError: true });
    return false;
  }
  const message =
    change.status === "in_review" ? t.waits(path) : change.status === "unchanged" ? t.nothing(path) : (told ?? (change.status === "merged" ? t.savedMerged(path) : t.saved(path)));
  tell(message, { undo: made.committed && change.status !== "in_review" ? () => undoCommit(project, made.seq) : undefined });
  return true;
}
