import { useQuery } from "@tanstack/react-query";
import { api, body } from "../api/client";
import { meQuery } from "../api/queries";
import { useText } from "../text";
import { Age, Chip, Problem, Skeleton } from "../ui/basics";
import { Table } from "../ui/table";
import { Examination } from "./Examination";

const AGAIN_MS = 10_000;

export function HealthPage() {
  const t = useText();
  const me = useQuery(meQuery()).data;
  const ready = useQuery({
    queryKey: ["readyz"],
    refetchInterval: AGAIN_MS,
    queryFn: async () => (await (await fetch("/readyz")).json()) as { status: string; database: string; blobs: string },
  });
  const version = useQuery({ queryKey: ["version"], queryFn: () => body(api.GET("/api/v1/version")) });
  const chores = useQuery({ queryKey: ["chores"], refetchInterval: AGAIN_MS, queryFn: ({ signal }) => body(api.GET("/api/v1/chores", { signal })) });
  const state = (code: string | undefined) => (code === undefined ? "…" : <Chip tone={code === "ok" ? "written" : "refused"} dot>{code === "ok" ? t.admin.ok : code}</Chip>);
  return (
    <div className="mx-auto flex max-w-4xl flex-col gap-6 p-4">
      <dl className="panel grid grid-cols-2 gap-4 p-4 sm:grid-cols-4">
        <div><dt className="mb-1 text-xs text-muted">{t.admin.database}</dt><dd>{state(ready.data?.database)}</dd></div>
        <div><dt className="mb-1 text-xs text-muted">{t.admin.blobs}</dt><dd>{state(ready.data?.blobs)}</dd></div>
        <div><dt className="mb-1 text-xs text-muted">{t.admin.version}</dt><dd className="mono">{version.data?.version ?? "…"}</dd></div>
        <div><dt className="mb-1 text-xs text-muted">{t.admin.you}</dt><dd className="truncate">{me?.principal}</dd></div>
      </dl>
      <Examination />
      <section>
        <h2 className="mb-2 text-lg font-semibold">{t.admin.chores}</h2>
        {chores.isPending && <Skeleton />}
        {chores.error && <Problem error={chores.error} retry={() => void chores.refetch()} />}
        {chores.data?.leader && (
          <p className="mb-2 flex flex-wrap items-center gap-2 text-sm text-muted">
            {t.admin.leader} <span className="mono text-text">{chores.data.leader.server}</span>
            <Chip tone={chores.data.leader.is_alive ? "written" : "refused"} dot>{chores.data.leader.is_alive ? t.admin.alive : t.admin.dead}</Chip>
          </p>
        )}
        {chores.data && (
          <Table
            label={t.admin.chores}
            head={[t.admin.every, t.admin.lastRun, t.admin.result]}
            rows={chores.data.chores.map((chore) => ({
              key: chore.name,
              cells: [<span key="n" className="mono">{chore.name}</span>, <Age key="a" at={chore.ended_at} />, chore.error ? <span key="r" className="text-refused">{t.admin.failed}: {chore.error}</span> : <Chip key="r" tone="written">{t.admin.ok}</Chip>],
            }))}
          />
        )}
      </section>
    </div>
  );
}
