// The app's manifests: what a session's folder is composed of, version by version, and how two of them differ.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api, body } from "../api/client";
import { useText } from "../text";
import { Age, Button, Chip, Command, Empty, inputClass, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { Table } from "../ui/table";
import { appKeys, manifestsQuery } from "./queries";

const route = getRouteApi("/store/$app");

export function ManifestsTab({ app }: { app: string }) {
  const t = useText();
  const navigate = useNavigate();
  const search = route.useSearch();
  const manifests = useQuery(manifestsQuery(app));
  const go = (changes: Partial<typeof search>) => void navigate({ to: "/store/$app", params: { app }, search: { ...search, ...changes }, replace: true });
  if (manifests.isPending) return <Skeleton lines={4} />;
  if (manifests.error) return <Problem error={manifests.error} retry={() => void manifests.refetch()} />;
  if (manifests.data.length === 0) return <Empty title={t.apps.manifestsNone} tall={false}>{t.apps.manifestsNoneHint}<Command>{`contextbase manifest publish ${app} manifest.json`}</Command></Empty>;
  const versions = manifests.data.map((one) => one.runtime_version);
  const [newest, second] = versions;
  const old = search.old ?? second ?? newest ?? "";
  const now = search.new ?? newest ?? "";
  const shown = manifests.data.find((one) => one.runtime_version === search.show);
  const chooser = (label: string, value: string, set: (version: string) => void) => (
    <select aria-label={label} className={`${inputClass} !w-auto`} value={value} onChange={(event) => set(event.target.value)}>{versions.map((one) => <option key={one}>{one}</option>)}</select>
  );
  return (
    <div className="flex flex-col gap-6">
      <Table
        label={t.apps.manifests}
        head={[t.apps.number, t.admin.version, t.apps.published, t.apps.snapshot, <span key="s" className="sr-only">{t.apps.show}</span>]}
        rows={manifests.data.map((one, index) => ({
          key: one.runtime_version,
          cells: [
            <span key="n" className="text-muted tabular">{one.number}</span>,
            <span key="v" className="flex flex-wrap items-center gap-2"><span className="mono">{one.runtime_version}</span>{index === 0 && <Chip tone="accent">{t.apps.latest}</Chip>}</span>,
            <span key="p"><Age at={one.created_at} /> · {one.created_by}</span>,
            <span key="q" className="tabular">#{one.tree_seq}</span>,
            <Button key="s" small look="quiet" onClick={() => go({ show: one.runtime_version })}>{t.apps.show}</Button>,
          ],
        }))}
      />
      {versions.length > 1 && (
        <section>
          <h2 className="mb-2 flex flex-wrap items-center gap-2 text-lg font-semibold">{t.apps.compare}{chooser(t.apps.old, old, (version) => go({ old: version }))}<span aria-hidden>→</span>{chooser(t.apps.newValue, now, (version) => go({ new: version }))}</h2>
          <Comparison app={app} old={old} now={now} />
        </section>
      )}
      <Dialog title={shown?.runtime_version ?? ""} open={shown !== undefined} onClose={() => go({ show: undefined })} wide>
        <pre className="mono overflow-auto p-4 whitespace-pre-wrap" tabIndex={0}>{JSON.stringify(shown?.manifest, null, 2)}</pre>
      </Dialog>
    </div>
  );
}

function Comparison({ app, old, now }: { app: string; old: string; now: string }) {
  const t = useText();
  const found = useQuery({
    queryKey: [...appKeys.one(app), "compare", old, now],
    staleTime: Infinity,
    queryFn: ({ signal }) => body(api.GET("/api/v1/apps/{app}/manifests/{version}/compare/{other}", { params: { path: { app, version: old, other: now } }, signal })),
  });
  if (found.isPending) return <Skeleton lines={3} className="p-0" />;
  if (found.error) return <Problem error={found.error} />;
  if (found.data.differences.length === 0) return <p className="text-muted">{t.apps.same}</p>;
  const value = (one: unknown, tone: string) => (one === null || one === undefined ? <span className="text-muted">{t.apps.nothing}</span> : <code className={`mono break-words whitespace-pre-wrap ${tone}`}>{typeof one === "string" ? one : JSON.stringify(one, null, 1)}</code>);
  return (
    <Table
      label={t.apps.compareWith(old, now)}
      head={[t.apps.field, t.apps.old, t.apps.newValue]}
      rows={found.data.differences.map((one) => ({ key: one.field, cells: [<span key="f" className="mono">{one.field}</span>, value(one.old, "text-refused"), value(one.new, "text-written")] }))}
    />
  );
}
