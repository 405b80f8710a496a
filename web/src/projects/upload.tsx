// Files and folders dropped on a project: uploaded by content, then committed together.
import { type DragEvent, type ReactNode, useState } from "react";
import { api, body, problem, type Schemas } from "../api/client";
import { text, useText } from "../text";
import { tell, tellError } from "../ui/toasts";
import { commit, undoCommit } from "./changes";

export type Dropped = { path: string; file: File };
const AT_ONCE = 4;
const PER_COMMIT = 500;

export async function uploadFiles(project: string, folder: string, dropped: Dropped[]): Promise<void> {
  if (dropped.length === 0) return;
  const t = text().upload;
  try {
    tell(`${t.title}: ${t.progress(0, dropped.length)}`);
    const head = await body(api.GET("/api/v1/projects/{project}", { params: { path: { project } } }));
    const seqs: number[] = [];
    const statuses: string[] = [];
    for (let start = 0; start < dropped.length; start += PER_COMMIT) {
      const part = dropped.slice(start, start + PER_COMMIT);
      const hashes = await inTurns(part, (one) => store(project, one.file));
      const changes = part.map((one, index) => ({ action: "write" as const, path: joined(folder, one.path), hash: hashes[index] }));
      const made = await commit(project, changes, { seq: head.head, epoch: head.epoch }, part.length === 1 ? "" : t.done(part.length));
      if (made.committed) seqs.push(made.seq);
      statuses.push(...made.changes.map((change) => change.status));
    }
    const count = (status: string) => statuses.filter((one) => one === status).length;
    const [waiting, refused] = [count("in_review"), count("refused")];
    const message = [t.done(statuses.length - waiting - refused), waiting && t.waiting(waiting), refused && t.failed(refused)].filter(Boolean).join(", ");
    tell(message, { isError: refused > 0, undo: seqs.length ? async () => { for (const seq of seqs.reverse()) await undoCommit(project, seq); } : undefined });
  } catch (error) {
    tellError(error);
  }
}

export function joined(folder: string, path: string): string {
  return folder ? `${folder}/${path}` : path;
}

async function store(project: string, file: File): Promise<string> {
  const answer = await fetch(`/api/v1/uploads?${new URLSearchParams({ project })}`, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } });
  if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
  return ((await answer.json()) as Schemas["UploadView"]).hash;
}

async function inTurns<T, R>(items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, items.length) }, async () => {
      while (next < items.length) {
        const index = next++;
        results[index] = await work(items[index] as T);
      }
    }),
  );
  return results;
}

/** Every file that was dropped, those in folders too. */
async function filesOf(transfer: DataTransfer): Promise<Dropped[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry != null);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ path: file.name, file }));
  return (await Promise.all(entries.map((entry) => filesBelow(entry, "")))).flat();
}

async function filesBelow(entry: FileSystemEntry, above: string): Promise<Dropped[]> {
  const path = joined(above, entry.name);
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: Dropped[] = [];
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject)); // 100 at a time
    if (part.length === 0) return found;
    for (const one of part) found.push(...(await filesBelow(one, path)));
  }
}

/** The part of a page that takes dropped files; they go into the folder that is on show. */
let dropFolder = "";
export function setDropFolder(folder: string): void {
  dropFolder = folder;
}

export function DropZone({ project, enabled, children }: { project: string; enabled: boolean; children: ReactNode }) {
  const t = useText();
  const [over, setOver] = useState(false);
  const hasFiles = (event: DragEvent) => enabled && event.dataTransfer.types.includes("Files");
  return (
    <div
      className="relative flex min-h-0 flex-1 flex-col"
      onDragOver={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => event.currentTarget === event.target && setOver(false)}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        const folder = dropFolder;
        void filesOf(event.dataTransfer).then((files) => uploadFiles(project, folder, files));
      }}
    >
      {children}
      {over && (
        <div className="pointer-events-none absolute inset-2 z-30 flex items-center justify-center rounded-xl border-2 border-dashed border-accent bg-accent-soft/80 text-lg font-medium text-accent">
          {t.upload.dropInto(dropFolder || t.upload.root)}
        </div>
      )}
    </div>
  );
}
