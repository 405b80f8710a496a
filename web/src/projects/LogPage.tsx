import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { LogEntry } from "../api/client";
import { logQuery, meQuery } from "../api/queries";
import { useShortcut } from "../shell/keyboard";
import { RunLink } from "./RunLink";
import { useText } from "../text";
import { Age, Avatar, Button, buttonClass, Chip, classes, Empty, inputClass, Outcome, Problem, Skeleton } from "../ui/basics";
import { shortName } from "../ui/format";
import { useListKeys } from "../ui/list";
import { RevertDialog } from "./RevertDialog";

const route = getRouteApi("/projects/$project/log");

export function LogPage() {
  const t = useText();
  const navigate = useNavigate();
  const { project } = route.useParams();
  const search = route.useSearch();
  const filter = { path: search.path, principal: search.principal, run: search.run };
  const log = useInfiniteQuery(logQuery(project, filter));
  const canWrite = useQuery(meQuery()).data?.actions.includes("write") ?? false;
  const commits = log.data?.pages.flatMap((page) => page.commits) ?? [];
  const isFiltered = Object.values(filter).some(Boolean);
  const go = (changes: Partial<typeof search>) => void navigate({ to: "/projects/$project/log", params: { project }, search: { ...search, ...changes } });
  const list = useListKeys(commits.length, (index) => {
    const one = commits[index];
    if (one) void navigate({ to: "/projects/$project/compare", params: { project }, search: { old: String(one.seq - 1), new: String(one.seq) } });
  });
  useShortcut("z", t.log.undo, () => commits[list.active] && go({ undo: commits[list.active]?.seq }), canWrite && commits.length > 0);
  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <div className="mx-auto max-w-4xl px-4 pb-8">
        <Filters key={JSON.stringify(filter)} filter={filter} go={go} />
        {log.isPending && <Skeleton lines={8} />}
        {log.error && <Problem error={log.error} retry={() => void log.refetch()} />}
        {log.data && commits.length === 0 && <Empty title={t.log.empty}>{isFiltered ? t.log.noneMatch : t.log.emptyHint}</Empty>}
        <ul {...list.props}>
          {commits.map((commit, index) => (
            <CommitRow key={commit.seq} project={project} commit={commit} isActive={index === list.active} canWrite={canWrite} onUndo={() => go({ undo: commit.seq })} onRollback={() => go({ rollback: commit.seq })} />
          ))}
        </ul>
        {log.hasNextPage && <Button className="mt-4" busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>{t.common.more}</Button>}
      </div>
      <RevertDialog project={project} undo={search.undo} rollback={search.rollback} path={search.path} onClose={() => go({ undo: undefined, rollback: undefined })} />
    </div>
  );
}

function Filters({ filter, go }: { filter: { path?: string; principal?: string; run?: string }; go: (changes: { path?: string; principal?: string; run?: string }) => void }) {
  const t = useText();
  const [values, setValues] = useState({ path: filter.path ?? "", principal: filter.principal ?? "", run: filter.run ?? "" });
  function submit(event: FormEvent) {
    event.preventDefault();
    go({ path: values.path.trim() || undefined, principal: values.principal.trim() || undefined, run: values.run.trim() || undefined });
  }
  const input = (name: keyof typeof values, label: string) => (
    <input className={classes(inputClass, "!w-auto min-w-24 flex-1")} aria-label={label} placeholder={label} value={values[name]} onChange={(event) => setValues({ ...values, [name]: event.target.value })} />
  );
  return (
    <form onSubmit={submit} className="flex flex-wrap gap-2 py-3">
      {input("path", t.log.filterPath)}
      {input("principal", t.log.filterWho)}
      {input("run", t.log.filterRun)}
      <Button type="submit">{t.common.filter}</Button>
      {Object.values(filter).some(Boolean) && <Button look="quiet" onClick={() => go({ path: undefined, principal: undefined, run: undefined })}>{t.common.clear}</Button>}
    </form>
  );
}

const SHOWN = 4;

function CommitRow({ project, commit, isActive, canWrite, onUndo, onRollback }: { project: string; commit: LogEntry; isActive: boolean; canWrite: boolean; onUndo: () => void; onRollback: () => void }) {
  const t = useText();
  const hidden = commit.change_count - Math.min(SHOWN, commit.changes.length);
  return (
    <li className={classes("group flex gap-3 border-b px-2 py-3", isActive && "bg-hover")} id={`commit-${commit.seq}`}>
      <Avatar principal={commit.author.principal} size={24} />
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-baseline gap-x-2">
          <span className="font-medium">{shortName(commit.author.principal)}</span>
          <span className="text-xs text-muted tabular">#{commit.seq} · <Age at={commit.author.at} /></span>
          <RunLink run={commit.run} />
          {commit.forks.length > 0 && <Chip tone="merged">{t.log.mergedWith(commit.forks.map((seq) => `#${seq}`).join(", "))}</Chip>}
        </div>
        <p className={classes("break-words", !commit.author.message && "text-muted")}>{commit.author.message || t.log.noMessage}</p>
        <ul className="mt-1 flex flex-col gap-0.5">
          {commit.changes.slice(0, SHOWN).map((change) => (
            <li key={`${change.path} ${change.what}`} className="flex items-center gap-2">
              <Outcome what={change.what} />
              <Link to="/projects/$project/files/$" params={{ project, _splat: change.path }} search={{ at: commit.seq }} className="mono min-w-0 truncate hover:underline">{change.path}</Link>
            </li>
          ))}
        </ul>
        {hidden > 0 && <p className="mt-1 text-xs text-muted">{t.log.moreChanges(hidden)}</p>}
      </div>
      <div className="flex shrink-0 flex-col items-end gap-1 sm:flex-row sm:items-start">
        <Link className={buttonClass("quiet", true)} to="/projects/$project/compare" params={{ project }} search={{ old: String(commit.seq - 1), new: String(commit.seq) }}>{t.log.diff}</Link>
        <Link className={buttonClass("quiet", true)} to="/projects/$project/files/$" params={{ project, _splat: "" }} search={{ at: commit.seq }}>{t.log.browse}</Link>
        {canWrite && <Button small look="quiet" onClick={onUndo}>{t.log.undo}</Button>}
        {canWrite && <Button small look="quiet" className="max-sm:hidden" onClick={onRollback}>{t.log.rollback}</Button>}
      </div>
    </li>
  );
}
