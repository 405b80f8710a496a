// Undo and rollback: first what would happen, then it is done, as a commit that can itself be undone.
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, body } from "../api/client";
import { useText } from "../text";
import { Button, Outcome, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { tell } from "../ui/toasts";
import { undoCommit } from "./changes";
import { Counts } from "./DiffView";

type Props = { project: string; undo?: number; rollback?: number; path?: string; onClose: () => void };

export function RevertDialog({ project, undo, rollback, path, onClose }: Props) {
  const t = useText();
  const title = undo !== undefined ? t.undo.title(t.undo.commit(undo)) : t.undo.rollbackTitle(rollback ?? 0);
  return (
    <Dialog wide title={path ? `${title} · ${path}` : title} open={undo !== undefined || rollback !== undefined} onClose={onClose}>
      <Preview project={project} undo={undo} rollback={rollback} path={path} onClose={onClose} />
    </Dialog>
  );
}

function Preview({ project, undo, rollback, path, onClose }: Props) {
  const t = useText();
  const ask = (dry_run: boolean) =>
    undo !== undefined
      ? body(api.POST("/api/v1/history/undo", { body: { project, seqs: [undo], path, message: dry_run ? "" : `Undo #${undo}`, dry_run } }))
      : body(api.POST("/api/v1/history/rollback", { body: { project, to: String(rollback), path, message: dry_run ? "" : `Roll back to #${rollback}`, dry_run } }));
  const preview = useQuery({ queryKey: ["project", project, "revert", undo, rollback, path], queryFn: () => ask(true), gcTime: 0, staleTime: 0 });
  const run = useMutation({
    mutationFn: () => ask(false),
    onSuccess: (made) => {
      const last = made.seqs[made.seqs.length - 1];
      onClose();
      if (last !== undefined) tell(t.undo.done(last), { undo: made.seqs.length === 1 ? () => undoCommit(project, last) : undefined });
    },
  });
  const files = preview.data?.preview ?? [];
  const contested = preview.data?.contested ?? [];
  const isNothing = preview.isSuccess && files.length === 0 && contested.length === 0;
  return (
    <>
      <div className="min-h-24 overflow-auto p-4" tabIndex={0} role="region" aria-label={t.undo.preview}>
        <p className="text-muted">{undo !== undefined ? t.undo.intro : t.undo.rollbackIntro}</p>
        {preview.isPending && <Skeleton lines={4} />}
        {preview.error && <Problem error={preview.error} retry={() => void preview.refetch()} />}
        {isNothing && <p className="mt-3 font-medium">{t.undo.nothing}</p>}
        {files.length > 0 && <h3 className="mt-4 mb-2 font-semibold">{t.undo.files(files.length)}</h3>}
        {files.slice(0, 200).map((file) => (
          <details key={file.path} className="border-b">
            <summary className="flex items-center gap-2 py-1.5">
              <Outcome what={file.status} />
              <span className="mono min-w-0 flex-1 truncate">{file.path}</span>
              <Counts added={file.added_lines} removed={file.removed_lines} />
            </summary>
            <pre className="mono mb-2 max-h-72 overflow-auto rounded-md bg-sunken p-2" tabIndex={0}>{file.patch}</pre>
          </details>
        ))}
        {contested.length > 0 && (
          <>
            <h3 className="mt-4 mb-2 font-semibold text-waiting">{t.undo.contested(contested.length)}</h3>
            <ul>{contested.map((one) => <li key={one} className="mono truncate py-0.5">{one}</li>)}</ul>
          </>
        )}
        {run.error && <p role="alert" className="mt-3 text-refused">{run.error.message}</p>}
      </div>
      <div className="flex justify-end gap-2 border-t p-3">
        <Button onClick={onClose}>{t.common.cancel}</Button>
        <Button look="primary" autoFocus busy={run.isPending} disabled={!preview.isSuccess || isNothing} onClick={() => run.mutate()}>{undo !== undefined ? t.undo.do : t.undo.doRollback}</Button>
      </div>
    </>
  );
}
