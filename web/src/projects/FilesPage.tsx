// Tree, file, its versions, and the time machine below them.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { FilePlus, FolderPlus, RefreshCw, ChevronsDownUp } from "lucide-react";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { api, body } from "../api/client";
import { meQuery, projectQuery } from "../api/queries";
import { onProjectChange } from "../live/hooks";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Button, classes, Command, Empty, IconButton, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { folderOf } from "../ui/format";
import { PathForm } from "../ui/PathForm";
import { commit, report } from "./changes";
import { FileView } from "./FileView";
import { NameFilter } from "./NameFilter";
import { TimeMachine } from "./TimeMachine";
import { Tree } from "./Tree";
import { TreeStore } from "./treeStore";
import { setDropFolder } from "./upload";

const route = getRouteApi("/projects/$project/files/$");
const PAGE = 2000;

export function FilesPage() {
  const t = useText();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { project, _splat } = route.useParams();
  const path = _splat ?? "";
  const { at } = route.useSearch();
  const store = useTreeStore(project, at);
  const [folder, setFolder] = useState(folderOf(path));
  const [creating, setCreating] = useState<"file" | "folder" | null>(null);
  const canWrite = (useQuery(meQuery()).data?.actions.includes("write") ?? false) && at === undefined;
  const working = useWorkingFiles(project);

  useEffect(() => {
    if (path) store.reveal(path);
  }, [store, path]);
  useEffect(() => {
    setDropFolder(folder);
    return () => setDropFolder("");
  }, [folder]);
  useShortcut("n", t.tree.newFile, () => setCreating("file"), canWrite);

  const open = (wanted: string) => {
    setFolder(folderOf(wanted));
    void navigate({ to: "/projects/$project/files/$", params: { project, _splat: wanted }, search: { at } });
  };
  return (
    <>
      <div className="flex min-h-0 flex-1">
        <section aria-label={t.tree.label} className={classes("flex w-full shrink-0 flex-col border-r md:w-64 lg:w-72", path && "hidden md:flex")}>
          <div className="flex shrink-0 items-center gap-1 border-b p-2">
            <NameFilter project={project} at={at} onOpen={open} />
            {canWrite && <IconButton label={`${t.tree.newFile} (n)`} onClick={() => setCreating("file")}><FilePlus size={15} strokeWidth={1.5} /></IconButton>}
            {canWrite && <IconButton label={t.tree.newFolder} onClick={() => setCreating("folder")}><FolderPlus size={15} strokeWidth={1.5} /></IconButton>}
            <IconButton label={t.tree.collapseAll} onClick={() => store.collapseAll()}><ChevronsDownUp size={15} strokeWidth={1.5} /></IconButton>
          </div>
          <TreeBody store={store} selected={path} working={working} onOpen={open} onFolder={setFolder} project={project} canWrite={canWrite} onNew={() => setCreating("file")} />
        </section>
        <section aria-label={t.file.contents} className={classes("min-h-0 min-w-0 flex-1 flex-col", path ? "flex" : "hidden md:flex")}>
          {path ? (
            <FileView key={path} project={project} path={path} />
          ) : (
            <Empty title={t.file.choose}>{t.file.chooseHint}</Empty>
          )}
        </section>
      </div>
      <TimeMachine project={project} path={path} at={at} />
      <Dialog title={creating === "folder" ? t.tree.newFolderTitle : t.tree.newFileTitle} open={creating !== null} onClose={() => setCreating(null)}>
        <PathForm
          start={folder ? `${folder}/` : ""}
          label={t.tree.pathPrompt}
          action={t.common.create}
          onSubmit={async (wanted) => {
            const head = await client.fetchQuery({ ...projectQuery(project), staleTime: 0 });
            const change = creating === "folder" ? { action: "mkdir" as const, path: wanted } : { action: "write" as const, path: wanted, text: "" };
            const made = await commit(project, [change], { seq: head.head, epoch: head.epoch });
            setCreating(null);
            if (!report(project, made)) return;
            store.refresh([wanted]);
            if (creating === "folder") store.reveal(`${wanted}/`);
            else void navigate({ to: "/projects/$project/files/$", params: { project, _splat: wanted }, search: { edit: true } });
          }}
        />
      </Dialog>
    </>
  );
}

function useTreeStore(project: string, at: number | undefined): TreeStore {
  const store = useMemo(
    () =>
      new TreeStore(async (folder, after) => {
        const page = await body(
          api.POST("/api/v1/checkouts", { body: { project, prefix: folder || null, seq: at, recursive: false, contents: false, after, limit: PAGE } }),
        );
        return { entries: page.entries, next: page.next_after };
      }),
    [project, at],
  );
  useEffect(() => {
    store.start();
    if (at !== undefined) return;
    return onProjectChange(project, (changed) => store.refresh(changed.paths, changed.everything));
  }, [store, project, at]);
  return store;
}

/** Files that somebody holds a lease on: an agent works there now. */
function useWorkingFiles(project: string): Set<string> {
  const leases = useQuery({
    queryKey: ["project", project, "leases"],
    refetchInterval: 20_000,
    queryFn: ({ signal }) => body(api.GET("/api/v1/leases", { params: { query: { project } }, signal })),
  });
  return useMemo(() => new Set((leases.data?.leases ?? []).map((lease) => lease.pattern)), [leases.data]);
}

function TreeBody({ store, project, canWrite, onNew, ...rest }: { store: TreeStore; selected: string; working: Set<string>; onOpen: (path: string) => void; onFolder: (path: string) => void; project: string; canWrite: boolean; onNew: () => void }) {
  const t = useText();
  useSyncExternalStore(store.subscribe, () => store.version);
  const rows = store.rows();
  if (store.error && rows.length === 0) return <Problem error={store.error} retry={() => store.refresh([], true)} />;
  if (rows.length === 0 && !store.isRootRead) return <Skeleton lines={8} />;
  if (rows.length === 0)
    return (
      <Empty title={t.tree.empty} action={canWrite && <Button onClick={onNew}>{t.tree.newFile}</Button>}>
        {t.tree.emptyHint}
        <Command>{`contextbase import ${project} ./folder`}</Command>
      </Empty>
    );
  return (
    <>
      <Tree store={store} {...rest} />
      {store.isLoading && <div role="status" className="flex items-center gap-2 border-t px-3 py-1 text-xs text-muted"><RefreshCw size={12} className="animate-spin" aria-hidden />{t.tree.more}</div>}
    </>
  );
}
