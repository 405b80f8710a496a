// One file: its text or picture, its versions beside it, and what can be done with it.
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { ChevronLeft, Download, Link2, MoreHorizontal, PanelRight } from "lucide-react";
import { DropdownMenu as Menu } from "radix-ui";
import { lazy, Suspense, useMemo, useState } from "react";
import { contentUrl } from "../api/client";
import { blameQuery, filePartQuery, fileQuery, type FileContent, LARGEST_SHOWN, meQuery, reviewsQuery, versionsQuery } from "../api/queries";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Age, Button, buttonClass, Chip, classes, Empty, IconButton, Problem, Skeleton } from "../ui/basics";
import { baseName, formatAge, formatBytes, shortName } from "../ui/format";
import { tell, tellError } from "../ui/toasts";
import { commit, report } from "./changes";
import type { BlameLine } from "./CodeView";
import { chosenLines, parseLines } from "./lines";
import { RenameDialog } from "./RenameDialog";
import { Versions } from "./Versions";

const CodeView = lazy(() => import("./CodeView"));
const PdfView = lazy(() => import("./PdfView"));
const Editor = lazy(() => import("./Editor"));
const route = getRouteApi("/projects/$project/files/$");

export function FileView({ project, path }: { project: string; path: string }) {
  const t = useText();
  const navigate = useNavigate();
  const client = useQueryClient();
  const search = route.useSearch();
  const { at } = search;
  const file = useQuery({ ...fileQuery(project, path, at), placeholderData: (before) => before });
  const versions = useInfiniteQuery(versionsQuery(project, path));
  const waiting = useQuery(reviewsQuery(project, "open", path)).data?.reviews.length ?? 0;
  const canWrite = (useQuery(meQuery()).data?.actions.includes("write") ?? false) && at === undefined;
  const [renaming, setRenaming] = useState(false);
  const [panel, setPanel] = useState(false);
  const found = file.data;
  const isText = typeof found?.text === "string";
  const canEdit = canWrite && isText && !found?.isCut && found?.entry.kind === "file";
  const isEditing = !!search.edit && canEdit;
  const set = (changes: Partial<typeof search>) => void navigate({ to: ".", search: { ...search, ...changes } as never, replace: true });

  useShortcut("e", t.file.edit, () => set({ edit: true }), canEdit && !isEditing);
  useShortcut("b", t.file.blame, () => set({ blame: search.blame ? undefined : true }), isText && !isEditing);
  useShortcut("y", t.common.copyLink, () => void copyLink(), !!found);
  useShortcut("Escape", t.file.backToNow, () => set({ at: undefined }), at !== undefined);

  async function copyLink() {
    const address = new URL(window.location.href);
    if (at === undefined && found) address.searchParams.set("at", String(found.seq)); // what is meant stays what is shown
    await navigator.clipboard.writeText(address.href).then(() => tell(t.common.copied), tellError);
  }

  async function remove() {
    if (!found) return;
    try {
      const made = await commit(project, [{ action: "delete", path }], { seq: found.seq, epoch: found.epoch });
      if (report(project, made, t.file.deleted(path))) void navigate({ to: "/projects/$project/files/$", params: { project, _splat: "" } });
    } catch (error) {
      tellError(error);
    }
  }

  const latest = versions.data?.pages[0]?.versions[0];
  const shownVersion = versions.data?.pages.flatMap((page) => page.versions).find((one) => one.number === found?.entry.number) ?? latest;
  return (
    <div className="flex min-h-0 flex-1">
      <div className="flex min-w-0 flex-1 flex-col">
        <div className="flex min-h-11 shrink-0 flex-wrap items-center gap-x-2 gap-y-1 border-b px-3 py-1.5">
          <Link to="/projects/$project/files/$" params={{ project, _splat: "" }} search={{ at }} className="rounded-md p-1 text-muted hover:bg-hover md:hidden" aria-label={t.common.back}><ChevronLeft size={16} /></Link>
          <h2 className="mono min-w-0 truncate" title={path}>{path}</h2>
          {waiting > 0 && <Link to="/review" search={{ project }}><Chip tone="waiting">{t.file.inReview(waiting)}</Chip></Link>}
          {at !== undefined && <Chip tone="accent">{t.file.atSnapshot(at)}</Chip>}
          {shownVersion && <span className="hidden text-sm text-muted lg:inline">{t.file.version(found?.entry.number ?? shownVersion.number)} · {shortName(shownVersion.author.principal)} · <Age at={shownVersion.author.at} /></span>}
          <div className="ml-auto flex items-center gap-1">
            {at !== undefined && <Button small onClick={() => set({ at: undefined })} keys="Esc">{t.file.backToNow}</Button>}
            {isText && !isEditing && <Button small aria-pressed={!!search.blame} className={search.blame ? "bg-hover" : ""} onClick={() => set({ blame: search.blame ? undefined : true })}>{t.file.blame}</Button>}
            {canEdit && !isEditing && <Button small onClick={() => set({ edit: true })}>{t.file.edit}</Button>}
            <IconButton label={`${t.common.copyLink} (y)`} onClick={() => void copyLink()}><Link2 size={15} strokeWidth={1.5} /></IconButton>
            <FileMenu project={project} path={path} at={at} canWrite={canWrite} onRename={() => setRenaming(true)} onDelete={() => void remove()} />
            <IconButton label={t.file.history2} aria-pressed={panel} className="xl:hidden" onClick={() => setPanel(!panel)}><PanelRight size={15} strokeWidth={1.5} /></IconButton>
          </div>
        </div>
        {file.isPending && <Skeleton lines={12} />}
        {file.error && <Problem error={file.error} retry={() => void file.refetch()} />}
        {found === null && (
          <Empty title={t.errors.notFound} action={at !== undefined && <Button onClick={() => set({ at: undefined })}>{t.file.backToNow}</Button>}>
            {at === undefined ? t.errors.notFoundHint : t.file.gone(at)}
          </Empty>
        )}
        {found && (
          <Suspense fallback={<Skeleton lines={12} />}>
            {isEditing ? (
              <Editor
                project={project}
                found={found}
                onDone={async () => {
                  await client.invalidateQueries({ queryKey: ["project", project, "at", "head"] });
                  set({ edit: undefined });
                }}
              />
            ) : (
              <Body key={`${path} ${found.seq}`} project={project} path={path} found={found} blame={!!search.blame} lines={search.lines} onLine={(line, extend) => set({ lines: chosenLines(search.lines, line, extend) })} />
            )}
          </Suspense>
        )}
      </div>
      <aside aria-label={t.file.history2} className={classes("w-72 shrink-0 flex-col overflow-auto border-l bg-background max-xl:absolute max-xl:inset-y-0 max-xl:right-0 max-xl:z-20 max-xl:shadow-float xl:flex", panel ? "flex" : "hidden")}>
        <Versions project={project} path={path} at={at} shown={found?.entry.number ?? null} onClose={() => setPanel(false)} />
      </aside>
      {found && <RenameDialog project={project} path={path} base={found} open={renaming} onClose={() => setRenaming(false)} />}
    </div>
  );
}

function Body({ project, path, found, blame, lines, onLine }: { project: string; path: string; found: FileContent; blame: boolean; lines?: string; onLine: (line: number, extend: boolean) => void }) {
  const t = useText();
  const chosen = useMemo(() => parseLines(lines), [lines]);
  const origins = useQuery({ ...blameQuery(project, path, found.seq), enabled: blame && typeof found.text === "string" });
  const [offset, setOffset] = useState(0);
  const part = useQuery({ ...filePartQuery(project, path, found.seq, offset), enabled: offset > 0 });
  const written = useMemo(() => blameLines(origins.data), [origins.data]);
  const { entry } = found;
  if (entry.kind === "directory") return <Empty title={t.file.folder} />;
  if (entry.kind === "symlink") return <Empty title={t.file.symlink}><code className="mono">{found.text}</code></Empty>;
  if (entry.mime.startsWith("image/"))
    return (
      <div className="flex min-h-0 flex-1 items-center justify-center overflow-auto bg-sunken p-6">
        <img src={contentUrl(project, path, found.seq)} alt={baseName(path)} className="max-h-full max-w-full rounded border bg-panel" />
      </div>
    );
  if (entry.mime === "application/pdf") return <PdfView url={contentUrl(project, path, found.seq)} name={baseName(path)} />;
  if (found.text === null)
    return (
      <Empty title={t.file.binary} action={<a className={buttonClass()} href={contentUrl(project, path, found.seq)} download={baseName(path)}>{t.common.download}</a>}>
        <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
          <dt>{t.file.size}</dt><dd>{formatBytes(entry.size)}</dd>
          <dt>{t.file.type}</dt><dd>{entry.mime || "application/octet-stream"}</dd>
        </dl>
      </Empty>
    );
  if (found.text === "") return <Empty title={t.file.emptyFile} />;
  return (
    <>
      {origins.error && <div role="alert" className="border-b px-3 py-1 text-sm text-refused">{origins.error.message}</div>}
      <div className="min-h-0 flex-1">
        {offset === 0 ? <CodeView text={found.text} path={path} label={t.file.contents} lines={chosen} blame={blame ? written : undefined} onLine={onLine} /> : part.error ? <Problem error={part.error} retry={() => void part.refetch()} /> : part.data === undefined ? <Skeleton lines={12} /> : <CodeView text={part.data} path={path} label={t.file.contents} />}
      </div>
      {found.isCut && (
        <div data-testid="parts" className="flex shrink-0 items-center gap-2 border-t px-3 py-2 text-sm text-muted tabular">
          <span className="min-w-0 flex-1 truncate">{t.sessions.files.page(formatBytes(offset), formatBytes(Math.min(entry.size, offset + LARGEST_SHOWN)), formatBytes(entry.size))}</span>
          <Button small disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - LARGEST_SHOWN))}>{t.sessions.files.previous}</Button>
          <Button small disabled={offset + LARGEST_SHOWN >= entry.size} onClick={() => setOffset(offset + LARGEST_SHOWN)}>{t.sessions.files.next}</Button>
        </div>
      )}
    </>
  );
}

type Blame = { origins: { number: number; seq: number; author: { principal: string; at: string; message: string } }[]; lines: { first: number; lines: string[]; number: number }[] };

export function blameLines(blame: Blame | undefined): BlameLine[] | undefined {
  if (!blame) return undefined;
  const origins = new Map(blame.origins.map((one) => [one.number, one]));
  return blame.lines.flatMap((run) => {
    const origin = origins.get(run.number);
    const label = origin ? `${shortName(origin.author.principal)} · ${formatAge(origin.author.at)}` : "";
    const title = origin ? `#${origin.seq} ${origin.author.message}` : "";
    return run.lines.map((_, index) => ({ label, title, isFirst: index === 0 }));
  });
}

const item = "flex h-8 cursor-default items-center gap-2 rounded-md px-2 text-sm outline-none data-[highlighted]:bg-hover";

function FileMenu({ project, path, at, canWrite, onRename, onDelete }: { project: string; path: string; at?: number; canWrite: boolean; onRename: () => void; onDelete: () => void }) {
  const t = useText();
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild><IconButton label={t.common.more}><MoreHorizontal size={16} strokeWidth={1.5} /></IconButton></Menu.Trigger>
      <Menu.Portal>
        <Menu.Content align="end" collisionPadding={8} className="z-50 min-w-48 animate-appear rounded-lg border bg-panel p-1 shadow-float">
          <Menu.Item className={item} asChild><a href={contentUrl(project, path, at)} download={baseName(path)}><Download size={14} aria-hidden />{t.common.download}</a></Menu.Item>
          <Menu.Item className={item} onSelect={() => void navigator.clipboard.writeText(path).then(() => tell(t.file.pathCopied), tellError)}>{t.file.copyPath}</Menu.Item>
          <Menu.Item className={item} asChild><Link to="/projects/$project/log" params={{ project }} search={{ path }}>{t.project.log}</Link></Menu.Item>
          {canWrite && (
            <>
              <Menu.Separator className="my-1 h-px bg-line" />
              <Menu.Item className={item} onSelect={onRename}>{t.file.renameTitle}</Menu.Item>
              <Menu.Item className={classes(item, "text-refused")} onSelect={onDelete}>{t.common.delete}</Menu.Item>
            </>
          )}
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
