// The session's own folder: the files as the agent sees them now.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { FilePlus, FolderPlus, RefreshCw, Upload } from "lucide-react";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { ApiError, api, body } from "../../api/client";
import { Tree } from "../../projects/Tree";
import { TreeStore } from "../../projects/treeStore";
import { useText } from "../../text";
import { Empty, IconButton, Problem, Skeleton } from "../../ui/basics";
import { Dialog } from "../../ui/dialog";
import { formatBytes } from "../../ui/format";
import { PathForm } from "../../ui/PathForm";
import { tell, tellError } from "../../ui/toasts";
import { latest, shownFiles } from "../parts";
import { sessionKeys } from "../queries";
import { folderName, listFolder, makeFolder, uploadToFolder, writeFile } from "./folder";
import type { PanelProps } from "./Panel";

export function FilesTab(props: PanelProps) {
  const { session, project, file, messages, onShow } = props;
  const t = useText();
  const name = folderName(session);
  const picker = useRef<HTMLInputElement>(null);
  const [folder, setFolder] = useState("");
  const [creating, setCreating] = useState<"file" | "folder" | null>(null);
  const [over, setOver] = useState(false);
  const store = useMemo(
    () =>
      new TreeStore(async (path, after) => {
        const page = await listFolder(session, path, after);
        return { entries: page.entries, next: page.next_after };
      }),
    [session.id],
  );
  const usage = useQuery({ queryKey: [...sessionKeys.folder(session.id), "usage"], retry: false, enabled: !!session.worker, queryFn: ({ signal }) => body(api.GET("/api/v1/workspaces/{workspace}/usage", { params: { path: { workspace: name }, query: { project } }, signal })) });
  const changed = latest(messages, "files")?.paths;
  const showing = shownFiles(messages)?.paths;
  const shown = useMemo(() => [...(changed ?? []), ...(showing ?? [])], [changed?.join("\n"), showing?.join("\n")]);
  const run = session.open_runs[0];
  useSyncExternalStore(store.subscribe, () => store.version);
  useEffect(() => {
    if (session.worker) store.start();
  }, [store, session.worker]);
  useEffect(() => {
    for (const path of [...shown, ...(file ? [file] : [])]) store.reveal(path);
  }, [store, shown, file]);
  // The agent's work shows as it goes on, and once more when it has ended.
  useEffect(() => {
    if (!session.worker) return;
    store.refresh([], true);
    if (!run) return;
    const timer = setInterval(() => store.refresh([], true), 5000);
    return () => clearInterval(timer);
  }, [store, run?.id, session.worker?.state]);

  const refresh = () => {
    store.refresh([], true);
    void usage.refetch();
  };
  const upload = (files: File[]) => void uploadToFolder(session, files, folder).then((paths) => { tell(t.sessions.files.uploaded(paths.length)); refresh(); }, tellError);
  const rows = store.rows();
  const isGone = !session.worker || (store.error instanceof ApiError && (store.error.status === 404 || store.error.status === 403));
  if (isGone)
    return (
      <Empty title={t.sessions.files.none}>
        {t.sessions.files.noneHint} {project && <Link className="link" to="/projects/$project" params={{ project }}>{project}</Link>}
      </Empty>
    );
  return (
    <div
      className="relative flex min-h-0 flex-1 flex-col"
      onDragOver={(event) => { if (!event.dataTransfer.types.includes("Files")) return; event.preventDefault(); setOver(true); }}
      onDragLeave={(event) => event.currentTarget === event.target && setOver(false)}
      onDrop={(event) => { if (!event.dataTransfer.files.length) return; event.preventDefault(); setOver(false); upload([...event.dataTransfer.files]); }}
    >
      <div className="flex shrink-0 items-center gap-1 border-b px-2 py-1">
        <span className="min-w-0 flex-1 truncate px-1 text-xs text-muted tabular">{usage.data && t.sessions.files.usage(formatBytes(usage.data.uncommitted_bytes), usage.data.uncommitted_files)}</span>
        <IconButton label={t.tree.newFile} onClick={() => setCreating("file")}><FilePlus size={15} strokeWidth={1.5} /></IconButton>
        <IconButton label={t.tree.newFolder} onClick={() => setCreating("folder")}><FolderPlus size={15} strokeWidth={1.5} /></IconButton>
        <input ref={picker} type="file" multiple hidden aria-label={t.sessions.files.upload} onChange={(event) => { upload([...(event.target.files ?? [])]); event.target.value = ""; }} />
        <IconButton label={t.sessions.files.upload} onClick={() => picker.current?.click()}><Upload size={15} strokeWidth={1.5} /></IconButton>
        <IconButton label={t.sessions.files.refresh} onClick={refresh}><RefreshCw size={15} strokeWidth={1.5} /></IconButton>
      </div>
      {store.error && rows.length === 0 ? <Problem error={store.error} retry={refresh} /> : rows.length === 0 && !store.isRootRead ? <Skeleton lines={6} /> : rows.length === 0 ? <Empty title={t.tree.empty} tall={false} /> : <Tree store={store} selected={file ?? ""} working={new Set(shown)} onOpen={(path) => onShow({ panel: "preview", file: path })} onFolder={setFolder} />}
      {over && <div className="pointer-events-none absolute inset-2 z-30 flex items-center justify-center rounded-xl border-2 border-dashed border-accent bg-accent-soft/80 p-4 text-center font-medium text-accent">{t.sessions.files.drop}</div>}
      <Dialog title={creating === "folder" ? t.tree.newFolderTitle : t.tree.newFileTitle} open={creating !== null} onClose={() => setCreating(null)}>
        <PathForm
          start={folder ? `${folder}/` : ""}
          label={t.tree.pathPrompt}
          action={t.common.create}
          onSubmit={async (path) => {
            if (creating === "folder") await makeFolder(session, path);
            else await writeFile(session, path, "", null);
            setCreating(null);
            refresh();
            if (creating === "file") onShow({ panel: "preview", file: path });
          }}
        />
      </Dialog>
    </div>
  );
}
