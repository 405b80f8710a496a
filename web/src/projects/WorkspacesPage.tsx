import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, api, body, type Workspace } from "../api/client";
import { projectQuery, workspacesQuery } from "../api/queries";
import { useText } from "../text";
import { Age, Button, Chip, Command, Empty, Problem, Skeleton, Who } from "../ui/basics";
import { DiffFile } from "./DiffView";

const route = getRouteApi("/projects/$project/agents");

export function WorkspacesPage() {
  const t = useText();
  const navigate = useNavigate();
  const { project } = route.useParams();
  const search = route.useSearch();
  const workspaces = useQuery({ ...workspacesQuery(project, search.all ? undefined : "open"), refetchInterval: 15_000 });
  const head = useQuery(projectQuery(project)).data?.head;
  const go = (changes: Partial<typeof search>) => void navigate({ to: "/projects/$project/agents", params: { project }, search: { ...search, ...changes }, replace: true });
  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <div className="mx-auto max-w-4xl p-4">
        <label className="mb-3 flex items-center gap-1.5 text-sm"><input type="checkbox" className="accent-[var(--accent)]" checked={!!search.all} onChange={(event) => go({ all: event.target.checked || undefined })} />{t.workspaces.showEnded}</label>
        {workspaces.isPending && <Skeleton lines={5} />}
        {workspaces.error && <Problem error={workspaces.error} retry={() => void workspaces.refetch()} />}
        {workspaces.data?.workspaces.length === 0 && <Empty title={t.workspaces.empty}>{t.workspaces.emptyHint}<Command>{`contextbase workspace open ${project}`}</Command></Empty>}
        {workspaces.data?.workspaces.map((one) => (
          <WorkspaceCard key={one.id} project={project} workspace={one} head={head} isOpen={search.show === one.id} onToggle={() => go({ show: search.show === one.id ? undefined : one.id })} />
        ))}
      </div>
    </div>
  );
}

function WorkspaceCard({ project, workspace, head, isOpen, onToggle }: { project: string; workspace: Workspace; head?: number; isOpen: boolean; onToggle: () => void }) {
  const t = useText();
  const behind = head === undefined ? 0 : head - workspace.shown_seq;
  return (
    <article className="panel mb-3 p-3" aria-label={workspace.agent}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Who principal={workspace.agent} />
        <Chip tone={workspace.state === "open" ? "merged" : workspace.state === "lost" ? "refused" : "plain"} dot>{t.workspaces.states[workspace.state] ?? workspace.state}</Chip>
        <span className="text-sm text-muted">{t.workspaces.commits(workspace.commits)} · {t.workspaces.base} #{workspace.base_seq}{workspace.state === "open" && ` · ${behind > 0 ? t.workspaces.behind(behind) : t.workspaces.upToDate}`}</span>
        <span className="ml-auto text-sm text-muted">{t.workspaces.seen} <Age at={workspace.seen_at} /></span>
      </div>
      <div className="mt-1 flex flex-wrap items-center gap-2">
        <code className="mono min-w-0 flex-1 truncate text-muted" title={workspace.path}>{workspace.machine}:{workspace.path}</code>
        {workspace.state === "open" && <Button small aria-expanded={isOpen} onClick={onToggle}>{t.workspaces.show}</Button>}
      </div>
      {isOpen && <Pending project={project} workspace={workspace} />}
    </article>
  );
}

function Pending({ project, workspace }: { project: string; workspace: Workspace }) {
  const t = useText();
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const diff = useQuery({
    queryKey: ["project", project, "workspaces", "diff", workspace.id],
    refetchInterval: 15_000,
    queryFn: ({ signal }) => body(api.GET("/api/v1/workspaces/{workspace}/diff", { params: { path: { workspace: workspace.id }, query: { project } }, signal })),
  });
  if (diff.isPending) return <Skeleton />;
  if (diff.error) return diff.error instanceof ApiError && diff.error.status === 421 ? <p className="mt-2 text-muted">{t.workspaces.elsewhere}</p> : <Problem error={diff.error} retry={() => void diff.refetch()} />;
  if (diff.data.files.length === 0) return <p className="mt-3 text-muted">{t.workspaces.none}</p>;
  return (
    <div className="mt-3">
      <p className="mb-2 text-sm text-muted">{t.workspaces.changed(diff.data.files.length)}</p>
      {diff.data.files.map((file) => (
        <DiffFile key={file.path} diff={file} open={!closed.has(file.path)} onToggle={() => setClosed((now) => { const next = new Set(now); if (!next.delete(file.path)) next.add(file.path); return next; })} />
      ))}
    </div>
  );
}
