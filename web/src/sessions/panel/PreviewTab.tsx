// One file of the session's folder: text with an editor, pictures, large files part by part, anything else as facts.
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Download, FolderTree, Pencil, TextCursorInput, Trash2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { ApiError, type Schemas } from "../../api/client";
import { useText } from "../../text";
import { Button, Empty, IconButton, Problem, Skeleton } from "../../ui/basics";
import { Dialog } from "../../ui/dialog";
import { baseName, formatBytes } from "../../ui/format";
import { PathForm } from "../../ui/PathForm";
import { tell, tellError } from "../../ui/toasts";
import { sessionKeys } from "../queries";
import { deleteFile, folderUrl, PART, readFile, renameFile, writeFile } from "./folder";
import type { PanelProps } from "./Panel";

const CodeView = lazy(() => import("../../projects/CodeView"));
const PdfView = lazy(() => import("../../projects/PdfView"));
const MOST_KEPT = 20_000_000; // of a deleted file, so that it can come back

export function PreviewTab(props: PanelProps) {
  const t = useText().sessions.files;
  if (!props.file) return <Empty title={t.choose}>{t.chooseHint}</Empty>;
  return <Preview key={props.file} {...props} path={props.file} />;
}

function Preview({ session, project, path, onShow }: PanelProps & { path: string }) {
  const t = useText();
  const client = useQueryClient();
  const [offset, setOffset] = useState(0);
  const [edited, setEdited] = useState<string | null>(null);
  const [isRenaming, setRenaming] = useState(false);
  const key = [...sessionKeys.folder(session.id), "file", path];
  const found = useQuery({ queryKey: [...key, offset], retry: false, placeholderData: keepPreviousData, refetchInterval: session.open_runs.length && edited === null ? 5000 : false, queryFn: ({ signal }) => readFile(session, path, offset, signal) });
  const url = folderUrl(session, path);
  const changed = () => void client.invalidateQueries({ queryKey: sessionKeys.folder(session.id) });

  async function save(slice: Schemas["FileSliceView"]) {
    try {
      await writeFile(session, path, edited ?? "", slice.hash);
      tell(t.sessions.files.saved(path));
      await client.invalidateQueries({ queryKey: key });
      setEdited(null);
    } catch (error) {
      tell(error instanceof ApiError && error.status === 412 ? t.sessions.files.changed : error instanceof Error ? error.message : "", { isError: true });
    }
  }

  async function remove() {
    try {
      const kept = await fetch(url);
      const bytes = kept.ok && Number(kept.headers.get("content-length") ?? 0) <= MOST_KEPT ? await kept.blob() : null;
      await deleteFile(session, path);
      changed();
      onShow({ panel: "files", file: undefined });
      tell(t.sessions.files.deleted(path), bytes ? { undo: async () => { await writeFile(session, path, bytes, null); changed(); } } : {});
    } catch (error) {
      tellError(error);
    }
  }

  if (found.isPending) return <Skeleton lines={8} />;
  if (found.error) {
    const isGone = found.error instanceof ApiError && (found.error.status === 404 || found.error.status === 403);
    if (isGone && project) return <Empty title={t.errors.notFound}>{t.sessions.files.noneHint} <Link className="link break-all" to="/projects/$project/files/$" params={{ project, _splat: path }}>{path}</Link></Empty>;
    return <Problem error={found.error} retry={() => void found.refetch()} />;
  }
  const slice = found.data;
  const isText = slice.encoding === "text";
  const isWhole = slice.start === 0 && slice.readLength >= slice.total;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex shrink-0 items-center gap-0.5 border-b px-2 py-1">
        <span className="mono min-w-0 flex-1 truncate px-1" title={path}>{path}</span>
        {isText && isWhole && edited === null && <IconButton label={t.common.edit} onClick={() => setEdited(slice.content)}><Pencil size={15} strokeWidth={1.5} /></IconButton>}
        <IconButton label={t.common.rename} onClick={() => setRenaming(true)}><TextCursorInput size={15} strokeWidth={1.5} /></IconButton>
        <a href={url} download={baseName(path)} aria-label={t.common.download} title={t.common.download} className="inline-flex size-8 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover hover:text-text"><Download size={15} strokeWidth={1.5} /></a>
        <IconButton label={t.common.delete} onClick={() => void remove()}><Trash2 size={15} strokeWidth={1.5} /></IconButton>
        <IconButton label={t.sessions.panelTabs.files ?? ""} onClick={() => onShow({ panel: "files" })}><FolderTree size={15} strokeWidth={1.5} /></IconButton>
      </div>
      <div className="min-h-0 flex-1 overflow-auto">
        {isText ? (
          <Suspense fallback={<Skeleton lines={8} />}>
            <CodeView text={slice.content} path={path} label={path} editable={edited !== null} onChange={setEdited} onSave={() => void save(slice)} onEscape={() => setEdited(null)} />
          </Suspense>
        ) : slice.mime === "application/pdf" ? (
          <Suspense fallback={<Skeleton lines={8} />}><PdfView url={url} name={baseName(path)} /></Suspense>
        ) : slice.mime.startsWith("image/") && slice.mime !== "image/svg+xml" ? (
          <div className="flex h-full items-center justify-center p-4"><img src={url} alt={baseName(path)} className="max-h-full max-w-full" /></div>
        ) : (
          <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 p-4 text-sm">
            <dt className="text-muted">{t.file.type}</dt><dd>{slice.mime}</dd>
            <dt className="text-muted">{t.file.size}</dt><dd>{formatBytes(slice.total)}</dd>
            <dd className="col-span-2 mt-2 text-muted">{t.sessions.files.cannot}</dd>
          </dl>
        )}
      </div>
      {isText && !isWhole && (
        <div className="flex shrink-0 items-center gap-2 border-t px-3 py-2 text-sm text-muted tabular">
          <span className="min-w-0 flex-1 truncate">{t.sessions.files.page(slice.start.toLocaleString(), (slice.start + slice.readLength).toLocaleString(), slice.total.toLocaleString())}</span>
          <Button small disabled={slice.start === 0} onClick={() => setOffset(Math.max(0, offset - PART))}>{t.sessions.files.previous}</Button>
          <Button small disabled={slice.start + slice.readLength >= slice.total} onClick={() => setOffset(offset + PART)}>{t.sessions.files.next}</Button>
        </div>
      )}
      {edited !== null && (
        <div className="flex shrink-0 justify-end gap-2 border-t p-2">
          <Button small onClick={() => setEdited(null)}>{t.common.cancel}</Button>
          <Button small look="primary" disabled={edited === slice.content} onClick={() => void save(slice)}>{t.common.save}</Button>
        </div>
      )}
      <Dialog title={t.file.renameTitle} open={isRenaming} onClose={() => setRenaming(false)}>
        <PathForm start={path} label={t.file.newPath} action={t.common.rename} onSubmit={async (target) => { await renameFile(session, path, target); setRenaming(false); changed(); tell(t.sessions.files.renamed(target)); onShow({ panel: "preview", file: target }); }} />
      </Dialog>
    </div>
  );
}
