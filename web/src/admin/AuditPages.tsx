// The audit trail of a project, and the system's own.
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Button, buttonClass, Chip, classes, Empty, inputClass, Problem, Skeleton } from "../ui/basics";
import { formatMoment, shortName } from "../ui/format";
import { Table } from "../ui/table";

type Filter = { principal?: string; action?: string; path?: string; via?: string; since?: string; until?: string };
type WayIn = NonNullable<Schemas["AuditRecordView"]["operator_type"]>;
const WAYS: WayIn[] = ["web_ui", "agent", "external_agent", "saas_adapter", "api", "system"];
const projectRoute = getRouteApi("/projects/$project/audit");
const systemRoute = getRouteApi("/admin/audit");

export function ProjectAuditPage() {
  const navigate = useNavigate();
  const { project } = projectRoute.useParams();
  const filter = projectRoute.useSearch();
  return <AuditTrail project={project} filter={filter} go={(search) => void navigate({ to: "/projects/$project/audit", params: { project }, search })} />;
}

export function SystemAuditPage() {
  const navigate = useNavigate();
  const filter = systemRoute.useSearch();
  return <AuditTrail filter={filter} go={(search) => void navigate({ to: "/admin/audit", search })} />;
}

function queryOf(filter: Filter) {
  const moment = (text: string | undefined) => (text ? new Date(text).toISOString() : undefined);
  return { principal: filter.principal, action: filter.action, path: filter.path, operator_type: WAYS.find((way) => way === filter.via), since: moment(filter.since), until: moment(filter.until) };
}

function AuditTrail({ project, filter, go }: { project?: string; filter: Filter; go: (filter: Filter) => void }) {
  const t = useText();
  const query = queryOf(filter);
  const trail = useInfiniteQuery({
    queryKey: ["audit", project ?? "", filter],
    initialPageParam: undefined as number | undefined,
    queryFn: ({ signal, pageParam }) =>
      project
        ? body(api.GET("/api/v1/audit", { params: { query: { project, ...query, before: pageParam, limit: 100 } }, signal }))
        : body(api.GET("/api/v1/system/audit", { params: { query: { ...query, before: pageParam, limit: 100 } }, signal })),
    getNextPageParam: (last) => last.next_before ?? undefined,
  });
  const records = trail.data?.pages.flatMap((page) => page.records) ?? [];
  const wanted = new URLSearchParams(Object.entries({ project, ...query }).filter((pair): pair is [string, string] => !!pair[1]));
  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <div className="mx-auto max-w-6xl p-4">
        <Filters key={JSON.stringify(filter)} filter={filter} go={go} withPath={!!project} exportUrl={`/api/v1/${project ? "" : "system/"}audit/export?${wanted}`} />
        {trail.isPending && <Skeleton lines={8} />}
        {trail.error && <Problem error={trail.error} retry={() => void trail.refetch()} />}
        {trail.isSuccess && records.length === 0 && <Empty title={t.audit.empty}>{t.audit.emptyHint}</Empty>}
        {records.length > 0 && (
          <Table
            label={t.audit.title}
            head={["#", t.audit.when, t.audit.who, t.audit.via, t.audit.action, t.audit.what]}
            rows={records.map((record) => ({
              key: String(record.number),
              cells: [
                <span key="n" className="text-muted tabular">{record.number}</span>,
                <time key="t" dateTime={record.at} className="whitespace-nowrap">{formatMoment(record.at)}</time>,
                <span key="w" className="whitespace-nowrap">{shortName(record.principal)}{record.on_behalf_of && <span className="block text-xs text-muted">{shortName(record.on_behalf_of)}</span>}</span>,
                <Chip key="v">{record.operator_type}</Chip>,
                <span key="a" className="mono">{record.action}</span>,
                <span key="s" className="break-words">{record.summary || record.path}</span>,
              ],
            }))}
          />
        )}
        {trail.hasNextPage && <Button className="mt-3" busy={trail.isFetchingNextPage} onClick={() => void trail.fetchNextPage()}>{t.common.more}</Button>}
      </div>
    </div>
  );
}

function Filters({ filter, go, withPath, exportUrl }: { filter: Filter; go: (filter: Filter) => void; withPath: boolean; exportUrl: string }) {
  const t = useText();
  const [values, setValues] = useState(filter);
  const small = classes(inputClass, "!w-auto min-w-24 flex-1");
  const date = classes(inputClass, "!w-auto min-w-36 flex-1");
  function submit(event: FormEvent) {
    event.preventDefault();
    go(Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value?.trim() || undefined])));
  }
  const input = (name: keyof Filter, label: string, type = "text") => (
    <input type={type} className={type === "date" ? date : small} aria-label={label} title={label} placeholder={label} value={values[name] ?? ""} onChange={(event) => setValues({ ...values, [name]: event.target.value })} />
  );
  return (
    <form onSubmit={submit} className="mb-3 flex flex-wrap gap-2">
      {input("principal", t.audit.who)}
      {input("action", t.audit.action)}
      {withPath && input("path", t.audit.path)}
      <select className={small} aria-label={t.audit.via} value={values.via ?? ""} onChange={(event) => setValues({ ...values, via: event.target.value })}>
        <option value="">{t.audit.via}: {t.common.all}</option>
        {WAYS.map((way) => <option key={way}>{way}</option>)}
      </select>
      {input("since", t.audit.since, "date")}
      {input("until", t.audit.until, "date")}
      <Button type="submit">{t.common.filter}</Button>
      {Object.values(filter).some(Boolean) && <Button look="quiet" onClick={() => go({})}>{t.common.clear}</Button>}
      <a className={buttonClass("quiet")} href={exportUrl} download="audit.jsonl">{t.audit.export}</a>
    </form>
  );
}
