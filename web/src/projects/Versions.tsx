import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { X } from "lucide-react";
import { logQuery, versionsQuery } from "../api/queries";
import { useText } from "../text";
import { Age, Avatar, Button, Chip, classes, IconButton, Problem, Skeleton } from "../ui/basics";
import { shortName } from "../ui/format";
import { RunLink } from "./RunLink";

export function Versions({ project, path, at, shown, onClose }: { project: string; path: string; at?: number; shown: number | null; onClose: () => void }) {
  const t = useText();
  const versions = useInfiniteQuery(versionsQuery(project, path));
  const commits = useInfiniteQuery(logQuery(project, { path })).data?.pages.flatMap((page) => page.commits) ?? [];
  const all = versions.data?.pages.flatMap((page) => page.versions) ?? [];
  return (
    <>
      <div className="flex h-11 shrink-0 items-center justify-between border-b px-3">
        <h3 className="font-semibold">{t.file.history}</h3>
        <IconButton label={t.common.close} className="xl:hidden" onClick={onClose}><X size={15} /></IconButton>
      </div>
      {versions.isPending && <Skeleton lines={5} />}
      {versions.error && <Problem error={versions.error} />}
      <ol>
        {all.map((version, index) => {
          const before = all[index + 1];
          return (
            <li key={version.number} className={classes("border-b px-3 py-2", version.number === shown && "bg-accent-soft")}>
              <Link to="/projects/$project/files/$" params={{ project, _splat: version.kind === "deleted" ? path : version.path }} search={{ at: index === 0 ? undefined : version.seq }} className="flex items-center gap-2">
                <Avatar principal={version.author.principal} />
                <span className="min-w-0 flex-1 truncate font-medium">{shortName(version.author.principal)}</span>
                <span className="text-xs text-muted tabular">#{version.seq} · <Age at={version.author.at} /></span>
              </Link>
              {version.author.message && <p className="mt-0.5 line-clamp-2 text-sm text-muted">{version.author.message}</p>}
              <div className="mt-1 flex flex-wrap items-center gap-2">
                {version.merged_number !== null && <Chip tone="merged">{t.outcome.merged}</Chip>}
                {version.kind === "deleted" && <Chip tone="refused">{t.outcome.deleted}</Chip>}
                {before && (
                  <Link to="/projects/$project/compare" params={{ project }} search={{ old: String(version.seq - 1), new: String(version.seq), path }} className="link text-xs">{t.log.diff}</Link>
                )}
                <RunLink run={commits.find((commit) => commit.seq === version.seq)?.run ?? null} />
                {index > 0 && (
                  <Link to="/projects/$project/log" params={{ project }} search={{ path, rollback: version.seq }} className="link text-xs">{t.file.restore}</Link>
                )}
              </div>
            </li>
          );
        })}
      </ol>
      {versions.hasNextPage && <Button look="quiet" className="m-2" busy={versions.isFetchingNextPage} onClick={() => void versions.fetchNextPage()}>{t.common.more}</Button>}
      {at !== undefined && <p className="sr-only">{t.file.atSnapshot(at)}</p>}
    </>
  );
}
