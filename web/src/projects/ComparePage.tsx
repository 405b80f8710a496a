import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { ArrowLeftRight } from "lucide-react";
import { type FormEvent, useState } from "react";
import { diffQuery } from "../api/queries";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Button, classes, Empty, Field, IconButton, inputClass, Problem, Skeleton } from "../ui/basics";
import { Counts, DiffFile } from "./DiffView";

const route = getRouteApi("/projects/$project/compare");

export function ComparePage() {
  const t = useText();
  const navigate = useNavigate();
  const { project } = route.useParams();
  const search = route.useSearch();
  const now = search.new ?? "head";
  const diff = useInfiniteQuery({ ...diffQuery(project, search.old ?? "", now, search.path), enabled: !!search.old });
  const files = diff.data?.pages.flatMap((page) => page.files) ?? [];
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState(-1);
  const step = (by: number) => {
    const next = Math.max(0, Math.min(files.length - 1, at + by));
    setAt(next);
    document.getElementById(`diff-${next}`)?.scrollIntoView({ block: "start" });
  };
  useShortcut("j", t.shortcuts.nextItem, () => step(1), files.length > 0);
  useShortcut("k", t.shortcuts.previousItem, () => step(-1), files.length > 0);
  const go = (changes: Partial<typeof search>) => void navigate({ to: "/projects/$project/compare", params: { project }, search: { ...search, ...changes } });
  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <Refs key={`${search.old} ${now} ${search.path}`} old={search.old ?? ""} now={now} path={search.path ?? ""} go={(old, next, path) => go({ old, new: next, path: path || undefined })} />
      <div className="mx-auto max-w-5xl px-4 pb-10">
        {!search.old && <Empty title={t.compare.empty}>{t.compare.emptyHint}</Empty>}
        {search.old && diff.isPending && <Skeleton lines={10} />}
        {diff.error && <Problem error={diff.error} retry={() => void diff.refetch()} />}
        {diff.data && files.length === 0 && <Empty title={t.compare.same} />}
        {files.length > 0 && (
          <div className="flex items-center gap-3 py-2 text-sm text-muted">
            <span>{t.compare.files(files.length)}{diff.hasNextPage ? "+" : ""}</span>
            <Counts added={files.reduce((sum, one) => sum + one.added_lines, 0)} removed={files.reduce((sum, one) => sum + one.removed_lines, 0)} />
            <Button small look="quiet" className="ml-auto" onClick={() => setClosed(closed.size ? new Set() : new Set(files.map((one) => one.path)))}>{closed.size ? t.compare.expandAll : t.compare.collapseAll}</Button>
          </div>
        )}
        {files.map((file, index) => (
          <div key={file.path} id={`diff-${index}`} className={classes("scroll-mt-2 rounded-[10px]", index === at && "ring-2 ring-accent/50")}>
            <DiffFile
              diff={file}
              open={!closed.has(file.path)}
              onToggle={() => setClosed((now) => { const next = new Set(now); if (!next.delete(file.path)) next.add(file.path); return next; })}
              link={file.new && <Link className="link text-xs" to="/projects/$project/files/$" params={{ project, _splat: file.path }} search={{ at: diff.data?.pages[0]?.new }}>{t.common.open}</Link>}
            />
          </div>
        ))}
        {diff.hasNextPage && <Button busy={diff.isFetchingNextPage} onClick={() => void diff.fetchNextPage()}>{t.common.more}</Button>}
      </div>
    </div>
  );
}

function Refs({ old, now, path, go }: { old: string; now: string; path: string; go: (old: string, now: string, path: string) => void }) {
  const t = useText();
  const [values, setValues] = useState({ old, now, path });
  function submit(event: FormEvent) {
    event.preventDefault();
    go(values.old.trim(), values.now.trim() || "head", values.path.trim());
  }
  const input = (name: keyof typeof values, required = false) => (
    <input required={required} className={classes(inputClass, "mono")} value={values[name]} onChange={(event) => setValues({ ...values, [name]: event.target.value })} />
  );
  return (
    <form onSubmit={submit} className="mx-auto grid max-w-5xl grid-cols-[1fr_auto_1fr] items-end gap-2 px-4 py-3 md:grid-cols-[1fr_auto_1fr_2fr_auto]">
      <Field label={t.compare.from}>{input("old", true)}</Field>
      <IconButton label={t.compare.swap} onClick={() => go(values.now, values.old, values.path)} disabled={!values.old}><ArrowLeftRight size={15} strokeWidth={1.5} /></IconButton>
      <Field label={t.compare.to}>{input("now")}</Field>
      <div className="max-md:col-span-2"><Field label={t.compare.onlyPath}>{input("path")}</Field></div>
      <Button type="submit" look="primary">{t.project.compare}</Button>
    </form>
  );
}
