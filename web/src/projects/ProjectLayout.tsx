// What all pages of a project share: its header, its parts, dropping files, staying live.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Outlet, useRouterState } from "@tanstack/react-router";
import { Download, Upload as UploadIcon } from "lucide-react";
import { useRef } from "react";
import { meQuery, projectQuery, reviewsQuery, workspacesQuery } from "../api/queries";
import { useLiveProject } from "../live/hooks";
import { useText } from "../text";
import { Button, buttonClass, Chip, Problem } from "../ui/basics";
import { formatBytes } from "../ui/format";
import { TabBar } from "../ui/tabBar";
import { DropZone, uploadFiles } from "./upload";

const route = getRouteApi("/projects/$project");
const TABS = ["files/$", "log", "compare", "search", "agents", "access", "audit"] as const;

export function ProjectLayout() {
  const t = useText();
  const { project } = route.useParams();
  useLiveProject(project);
  const detail = useQuery(projectQuery(project));
  const me = useQuery(meQuery()).data;
  const path = useRouterState({ select: (state) => state.location.pathname });
  const chooser = useRef<HTMLInputElement>(null);
  const canWrite = me?.actions.includes("write") ?? false;
  const isAdmin = me?.actions.includes("admin") ?? false;
  if (detail.error && !detail.data) return <Problem error={detail.error} retry={() => void detail.refetch()} />;
  const names: Record<(typeof TABS)[number], string> = {
    "files/$": t.project.files, log: t.project.log, compare: t.project.compare, search: t.project.search, agents: t.project.workspaces, access: t.project.settings, audit: t.project.audit,
  };
  return (
    <DropZone project={project} enabled={canWrite}>
      <header className="shrink-0 border-b">
        <div className="flex min-h-12 flex-wrap items-center gap-x-3 gap-y-1 px-4 pt-2 md:py-2">
          <nav aria-label={t.projects.title} className="flex min-w-0 items-center gap-2">
            <Link to="/projects" className="text-muted hover:text-text">{t.nav.projects}</Link>
            <span className="text-faint" aria-hidden>/</span>
            <h1 className="truncate font-semibold">{project}</h1>
          </nav>
          <Chips project={project} files={detail.data?.files} bytes={detail.data?.bytes} />
          <div className="ml-auto hidden items-center gap-2 md:flex">
            <a className={buttonClass("quiet")} href={`/api/v1/files/${encodeURIComponent(project)}/download?format=zip`} download title={t.project.downloadAll}>
              <Download size={15} strokeWidth={1.5} aria-hidden />{t.common.download}
            </a>
            {canWrite && (
              <>
                <Button onClick={() => chooser.current?.click()} title={t.project.importHint}><UploadIcon size={15} strokeWidth={1.5} aria-hidden />{t.project.import}</Button>
                <input
                  ref={chooser}
                  type="file"
                  multiple
                  hidden
                  aria-label={t.upload.choose}
                  onChange={(event) => {
                    const files = [...(event.target.files ?? [])].map((file) => ({ path: file.name, file }));
                    event.target.value = "";
                    void uploadFiles(project, "", files);
                  }}
                />
              </>
            )}
          </div>
        </div>
        <TabBar label={t.project.tabs} open={path}>
          {TABS.filter((tab) => isAdmin || (tab !== "access" && tab !== "audit")).map((tab) => (
            <Link
              key={tab}
              to={`/projects/$project/${tab}`}
              params={{ project, _splat: "" }}
              className="-mb-px border-b-2 border-transparent px-2 py-2 text-sm whitespace-nowrap text-muted hover:text-text"
              activeProps={{ className: "!border-text !text-text font-medium", "aria-current": "page" }}
              activeOptions={{ includeSearch: false }}
            >
              {names[tab]}
            </Link>
          ))}
        </TabBar>
      </header>
      <Outlet />
    </DropZone>
  );
}

function Chips({ project, files, bytes }: { project: string; files?: number | null; bytes?: number | null }) {
  const t = useText();
  const working = useQuery(workspacesQuery(project, "open")).data?.workspaces.length ?? 0;
  const waiting = useQuery(reviewsQuery(project, "open")).data?.reviews.length ?? 0;
  return (
    <div className="flex flex-wrap items-center gap-2">
      {files != null && bytes != null && <span className="hidden sm:inline"><Chip>{t.project.size(files, formatBytes(bytes))}</Chip></span>}
      {working > 0 && (
        <Link to="/projects/$project/agents" params={{ project }}><Chip tone="merged" dot>{t.project.agents(working)}</Chip></Link>
      )}
      {waiting > 0 && (
        <Link to="/review" search={{ project }}><Chip tone="waiting" dot>{t.project.waiting(waiting)}</Chip></Link>
      )}
    </div>
  );
}
