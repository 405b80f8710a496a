// Tokens and cost of what agents asked models, by person, project, model or day; and budgets.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api, body, type Schemas } from "../api/client";
import { formatCost } from "../sessions/states";
import { useText } from "../text";
import { Button, classes, Command, Empty, inputClass, Problem, Skeleton } from "../ui/basics";
import { shortName } from "../ui/format";
import { Table } from "../ui/table";

type Group = Schemas["UsageTable"]["by"];
export const GROUPS: Group[] = ["person", "project", "model", "day"];
const route = getRouteApi("/admin/usage");
const MICRO = 1_000_000;

export function UsagePage() {
  const t = useText();
  const navigate = useNavigate();
  const search = route.useSearch();
  const by = search.by ?? "person";
  const go = (changes: Partial<typeof search>) => void navigate({ to: "/admin/usage", search: { ...search, ...changes }, replace: true });
  const table = useQuery({
    queryKey: ["usage", by, search.since ?? "", search.until ?? ""],
    queryFn: ({ signal }) => body(api.GET("/api/v1/usage", { params: { query: { by, since: search.since, until: search.until, limit: 500 } }, signal })),
  });
  const rows = table.data?.rows ?? [];
  const total = (name: "requests" | "input" | "output" | "cache_read" | "cache_write" | "cost") => rows.reduce((sum, row) => sum + row[name], 0);
  const most = Math.max(1, ...rows.map((row) => row.cost || row.input + row.output));
  const count = (value: number) => <span className="tabular">{value.toLocaleString()}</span>;
  const money = (micro: number) => <span className="tabular">{formatCost(micro)}</span>;
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-6 p-4">
      <section>
        <div className="mb-3 flex flex-wrap items-center gap-2">
          <div role="radiogroup" aria-label={t.usage.by} className="flex rounded-md border border-line-strong p-px">
            {GROUPS.map((one) => <button key={one} type="button" role="radio" aria-checked={one === by} onClick={() => go({ by: one })} className={classes("h-7 rounded-[5px] px-2.5 text-sm", one === by ? "bg-hover font-medium" : "text-muted hover:text-text")}>{t.usage.groups[one]}</button>)}
          </div>
          <span className="flex items-center gap-1.5 text-sm text-muted sm:ml-auto">
            <input type="date" aria-label={t.usage.since} className={`${inputClass} !w-auto`} value={search.since ?? ""} onChange={(event) => go({ since: event.target.value || undefined })} />–
            <input type="date" aria-label={t.usage.until} className={`${inputClass} !w-auto`} value={search.until ?? ""} onChange={(event) => go({ until: event.target.value || undefined })} />
          </span>
          {(search.since || search.until) && <Button look="quiet" onClick={() => go({ since: undefined, until: undefined })}>{t.usage.thisMonth}</Button>}
        </div>
        {table.isPending && <Skeleton lines={5} />}
        {table.error && <Problem error={table.error} retry={() => void table.refetch()} />}
        {table.isSuccess && rows.length === 0 && <Empty title={t.usage.empty} tall={false}>{t.usage.emptyHint}</Empty>}
        {rows.length > 0 && (
          <Table
            label={t.usage.title}
            head={[t.usage.groups[by], t.usage.requests, t.usage.input, t.usage.output, t.usage.cacheRead, t.usage.cacheWrite, t.usage.cost]}
            rows={[
              ...rows.map((row) => ({
                key: row.subject,
                cells: [
                  <span key="s" className="block min-w-32"><span className={by === "model" || by === "day" ? "mono" : "font-medium"}>{shortName(row.subject)}</span><span aria-hidden className="mt-1 block h-1 rounded-full bg-merged" style={{ width: `${(100 * (row.cost || row.input + row.output)) / most}%` }} /></span>,
                  count(row.requests), count(row.input), count(row.output), count(row.cache_read), count(row.cache_write), money(row.cost),
                ],
              })),
              { key: "\u0000total", cells: [<strong key="t">{t.usage.total}</strong>, count(total("requests")), count(total("input")), count(total("output")), count(total("cache_read")), count(total("cache_write")), <strong key="c">{money(total("cost"))}</strong>] },
            ]}
          />
        )}
      </section>
      <Budgets />
    </div>
  );
}

function Budgets() {
  const t = useText();
  const found = useQuery({ queryKey: ["budgets"], queryFn: async ({ signal }) => (await body(api.GET("/api/v1/model-budgets", { signal }))).budgets });
  if (!found.data) return null;
  const money = (micro: number) => `$${(micro / MICRO).toFixed(2)}`;
  return (
    <section>
      <h2 className="mb-2 text-lg font-semibold">{t.usage.budgets}</h2>
      {found.data.length === 0 && <div className="text-muted">{t.usage.noBudgets}<Command>contextbase model budget --user ann --monthly 50</Command></div>}
      {found.data.length > 0 && (
        <Table
          label={t.usage.budgets}
          head={[t.usage.subject, t.usage.limit, t.usage.spent, t.usage.share]}
          rows={found.data.map((one) => {
            const share = one.monthly_limit ? Math.min(1, (one.spent + one.reserved) / one.monthly_limit) : 1;
            return {
              key: `${one.scope} ${one.subject}`,
              cells: [shortName(one.subject), <span key="l" className="tabular">{money(one.monthly_limit)}</span>, <span key="s" className="tabular">{money(one.spent)}</span>, <span key="b" className="flex items-center gap-2"><span aria-hidden className="h-1.5 w-24 overflow-hidden rounded-full bg-hover"><span className={classes("block h-full", share > 0.9 ? "bg-refused" : share > 0.7 ? "bg-waiting" : "bg-written")} style={{ width: `${100 * share}%` }} /></span><span className="tabular">{Math.round(100 * share)} %</span></span>],
            };
          })}
        />
      )}
    </section>
  );
}
