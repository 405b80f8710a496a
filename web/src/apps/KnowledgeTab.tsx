import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Button, Chip, classes, Empty, Field, inputClass, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { Table } from "../ui/table";
import { tell, tellError } from "../ui/toasts";
import { LayerChip } from "./ConfigTab";
import { appKeys, knowledgeQuery, type Layer, LAYERS } from "./queries";

type Base = Schemas["KnowledgeBaseView"];

export function KnowledgeTab({ app, project, manages }: { app: string; project: string | undefined; manages: boolean }) {
  const t = useText();
  const client = useQueryClient();
  const [tag, setTag] = useState("");
  const [editing, setEditing] = useState<Base | "new" | null>(null);
  const bases = useQuery(knowledgeQuery(app, project));
  const refresh = () => client.invalidateQueries({ queryKey: appKeys.one(app) });
  const put = (layer: Layer, name: string, description: string, tags: string[]) =>
    body(api.PUT("/api/v1/apps/{app}/knowledge-bases/{layer}/{name}", { params: { path: { app, layer, name }, query: { app_project: project } }, body: { description, tags } }));
  const remove = useMutation({
    mutationFn: (base: Base) => body(api.DELETE("/api/v1/apps/{app}/knowledge-bases/{layer}/{name}", { params: { path: { app, layer: base.layer, name: base.name }, query: { app_project: project } } })),
    onSuccess: (_, base) => {
      void refresh();
      tell(t.apps.kbRemoved(base.name), { undo: async () => { await put(base.layer as Layer, base.name, base.description, base.tags); await refresh(); } });
    },
    onError: tellError,
  });
  if (bases.isPending) return <Skeleton lines={4} />;
  if (bases.error) return <Problem error={bases.error} retry={() => void bases.refetch()} />;
  const tags = [...new Set(bases.data.flatMap((base) => base.tags))].sort();
  const shown = bases.data.filter((base) => !tag || base.tags.includes(tag));
  const mayChange = (base: Base) => manages || base.layer === "user";
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center gap-2">
        {tags.length > 0 && (
          <div role="group" aria-label={t.apps.tags} className="flex flex-wrap gap-1">
            {["", ...tags].map((one) => <button key={one} type="button" aria-pressed={one === tag} onClick={() => setTag(one)} className={classes("h-7 rounded-full border px-2.5 text-xs", one === tag ? "border-text font-medium" : "text-muted hover:text-text")}>{one || t.apps.allTags}</button>)}
          </div>
        )}
        <Button className="ml-auto" onClick={() => setEditing("new")}>{t.apps.kbNew}</Button>
      </div>
      {bases.data.length === 0 && <Empty title={t.apps.kbNone} tall={false}>{t.apps.kbNoneHint}</Empty>}
      {shown.length > 0 && (
        <Table
          label={t.apps.knowledge}
          head={[t.apps.name, t.apps.tags, t.apps.prefix, t.apps.from, <span key="r" className="sr-only">{t.people.actions}</span>]}
          rows={shown.map((base) => ({
            key: `${base.layer}/${base.name}`,
            cells: [
              <span key="n"><span className="font-medium">{base.name}</span>{base.description && <span className="block text-sm text-muted">{base.description}</span>}</span>,
              <span key="t" className="flex flex-wrap gap-1">{base.tags.map((one) => <Chip key={one}>{one}</Chip>)}</span>,
              <code key="p" className="mono break-all">{base.prefix}</code>,
              <LayerChip key="l" layer={base.layer} />,
              mayChange(base) && <span key="r" className="flex gap-1"><Button small look="quiet" onClick={() => setEditing(base)}>{t.common.edit}</Button><Button small look="quiet" onClick={() => remove.mutate(base)}>{t.apps.remove}</Button></span>,
            ],
          }))}
        />
      )}
      <Dialog title={editing === "new" ? t.apps.kbNew : (editing?.name ?? "")} open={editing !== null} onClose={() => setEditing(null)}>
        {editing !== null && <BaseForm base={editing === "new" ? null : editing} layers={manages ? LAYERS : ["user"]} save={async (...values) => { await put(...values); await refresh(); tell(t.apps.kbSaved(values[1])); setEditing(null); }} />}
      </Dialog>
    </div>
  );
}

function BaseForm({ base, layers, save }: { base: Base | null; layers: Layer[]; save: (layer: Layer, name: string, description: string, tags: string[]) => Promise<void> }) {
  const t = useText();
  const [values, setValues] = useState({ layer: (base?.layer ?? layers[0]) as Layer, name: base?.name ?? "", description: base?.description ?? "", tags: base?.tags.join(" ") ?? "" });
  const send = useMutation({ mutationFn: () => save(values.layer, values.name.trim(), values.description, values.tags.split(/\s+/).filter(Boolean)) });
  function submit(event: FormEvent) {
    event.preventDefault();
    send.mutate();
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 overflow-auto p-4">
      <div className="grid grid-cols-[1fr_auto] gap-4">
        <Field label={t.apps.name}><input autoFocus={!base} required disabled={!!base} pattern="[A-Za-z0-9][A-Za-z0-9._\-]*" maxLength={100} className={classes(inputClass, "mono")} value={values.name} onChange={(event) => setValues({ ...values, name: event.target.value })} /></Field>
        <Field label={t.apps.layer}><select disabled={!!base} className={inputClass} value={values.layer} onChange={(event) => setValues({ ...values, layer: event.target.value as Layer })}>{layers.map((one) => <option key={one} value={one}>{t.apps.layers[one]}</option>)}</select></Field>
      </div>
      <Field label={t.apps.description}><input autoFocus={!!base} maxLength={4096} className={inputClass} value={values.description} onChange={(event) => setValues({ ...values, description: event.target.value })} /></Field>
      <Field label={t.apps.tags} hint={t.apps.tagsHint}><input className={inputClass} value={values.tags} onChange={(event) => setValues({ ...values, tags: event.target.value })} /></Field>
      {send.error && <p role="alert" className="text-refused">{send.error.message}</p>}
      <Button type="submit" look="primary" busy={send.isPending} disabled={!values.name.trim()} className="self-end">{t.common.save}</Button>
    </form>
  );
}
