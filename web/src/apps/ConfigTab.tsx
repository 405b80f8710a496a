// The configuration that holds for the reader, with the layer each value is from; each layer can be edited.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { ApiError, api, body, type Schemas } from "../api/client";
import { PROFILES, providerName } from "../sessions/profiles";
import { agentsQuery } from "../sessions/queries";
import { useText } from "../text";
import { Age, Button, Chip, classes, Field, inputClass, Problem, Skeleton, type Tone } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { Table } from "../ui/table";
import { tell } from "../ui/toasts";
import { type FieldName, joinConfig, rowsOf, shownValue, splitConfig } from "./config";
import { appKeys, effectiveQuery, type Layer, layerQuery, LAYERS } from "./queries";

const TONES: Record<string, Tone> = { app: "plain", project: "accent", user: "merged", run: "waiting" };
const LANDS = ["auto", "after_review", "never"] as const;

export function LayerChip({ layer }: { layer: string | undefined }) {
  const t = useText().apps;
  return layer ? <Chip tone={TONES[layer] ?? "plain"}>{t.layers[layer] ?? layer}</Chip> : null;
}

export function ConfigTab({ app, project, manages }: { app: string; project: string | undefined; manages: boolean }) {
  const t = useText();
  const found = useQuery(effectiveQuery(app, project));
  const [editing, setEditing] = useState<Layer | null>(null);
  if (found.isPending) return <Skeleton lines={6} />;
  if (found.error) return <Problem error={found.error} retry={() => void found.refetch()} />;
  const rows = rowsOf(found.data.config, found.data.provenance);
  const isStored = (value: unknown) => {
    const name = typeof value === "object" && value && "secret" in value ? String(value.secret) : null;
    return name === null ? null : Boolean(found.data.sealed[name]);
  };
  return (
    <div className="flex flex-col gap-4">
      <p className="max-w-prose text-muted">{t.apps.effectiveHint}</p>
      {rows.length === 0 && <p>{t.apps.noConfig}</p>}
      {rows.length > 0 && (
        <Table
          label={t.apps.effective}
          head={[t.apps.setting, t.apps.value, t.apps.from]}
          rows={rows.map((row) => ({
            key: row.name,
            cells: [
              <span key="n" className="block"><span className="mono">{row.name}</span>{t.apps.settings[row.name] && <span className="block text-xs text-muted">{t.apps.settings[row.name]}</span>}</span>,
              <span key="v" className="flex flex-wrap items-center gap-2"><span className="mono line-clamp-6 min-w-0 break-words whitespace-pre-wrap">{shownValue(row.value)}</span>{isStored(row.value) !== null && <Chip tone={isStored(row.value) ? "written" : "waiting"}>{isStored(row.value) ? t.apps.sealed : t.apps.missing}</Chip>}</span>,
              <LayerChip key="l" layer={row.layer} />,
            ],
          }))}
        />
      )}
      <ul className="panel divide-y">
        {LAYERS.map((layer) => (
          <li key={layer} className="flex flex-wrap items-center gap-3 px-3 py-2">
            <LayerChip layer={layer} />
            <span className="text-sm text-muted">{found.data.versions[layer] ? t.apps.version(found.data.versions[layer] ?? 0) : t.apps.unset}</span>
            {(manages || layer === "user") && <Button small className="ml-auto" onClick={() => setEditing(layer)}>{t.apps.editLayer(t.apps.layers[layer] ?? layer)}</Button>}
          </li>
        ))}
      </ul>
      <Dialog title={editing ? t.apps.editLayer(t.apps.layers[editing] ?? editing) : ""} open={editing !== null} onClose={() => setEditing(null)} wide>
        {editing && <LayerEditor app={app} layer={editing} project={project} onDone={() => setEditing(null)} />}
      </Dialog>
    </div>
  );
}

function LayerEditor({ app, layer, project, onDone }: { app: string; layer: Layer; project: string | undefined; onDone: () => void }) {
  const versions = useQuery({ ...layerQuery(app, layer, project), staleTime: 0, gcTime: 0 });
  if (versions.isPending) return <Skeleton lines={6} />;
  if (versions.error) return <Problem error={versions.error} />;
  return <LayerForm app={app} layer={layer} project={project} versions={versions.data} onDone={onDone} />;
}

function LayerForm({ app, layer, project, versions, onDone }: { app: string; layer: Layer; project: string | undefined; versions: Schemas["AgentConfigVersion"][]; onDone: () => void }) {
  const t = useText();
  const client = useQueryClient();
  const last = versions[0];
  const start = splitConfig(last?.config ?? {});
  const [fields, setFields] = useState(start.fields);
  const [rest, setRest] = useState(start.rest);
  const [isWrong, setWrong] = useState(false);
  const agents = useQuery(agentsQuery()).data?.agents ?? [];
  const save = useMutation({
    mutationFn: (config: Record<string, unknown>) =>
      body(api.PUT("/api/v1/apps/{app}/configs/{layer}", { params: { path: { app, layer }, query: { app_project: project, expected_version: last?.version ?? 0 } }, body: config as Schemas["AgentConfig"] })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: appKeys.one(app) });
      tell(t.apps.saved);
      onDone();
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    const config = joinConfig(fields, rest);
    setWrong(config === null);
    if (config) save.mutate(config);
  }
  const set = (name: FieldName) => (event: { target: { value: string } }) => setFields({ ...fields, [name]: event.target.value });
  const choice = (name: FieldName, options: [string, string][]) => (
    <Field label={t.apps.settings[name] ?? name}>
      <select className={inputClass} value={fields[name]} onChange={set(name)}>
        <option value="">{t.apps.inherit}</option>
        {options.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
        {fields[name] && !options.some(([value]) => value === fields[name]) && <option>{fields[name]}</option>}
      </select>
    </Field>
  );
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 overflow-auto p-4">
      <div className="grid gap-4 sm:grid-cols-2">
        {choice("provider", agents.map((one) => [one.name, providerName(one.name)]))}
        <Field label={t.apps.settings.model ?? ""}><input className={inputClass} placeholder={t.apps.inherit} value={fields.model} onChange={set("model")} /></Field>
        {choice("profile", PROFILES.map((one) => [one, t.sessions.composer.profiles[one]]))}
        {choice("landing", LANDS.map((one) => [one, t.sessions.draft.lands[one] ?? one]))}
      </div>
      <Field label={t.apps.settings.system_prompt ?? ""}><textarea rows={4} className={classes(inputClass, "h-auto py-1.5")} placeholder={t.apps.inherit} value={fields.system_prompt} onChange={set("system_prompt")} /></Field>
      <Field label={t.apps.theRest} hint={t.apps.theRestHint}><textarea rows={8} spellCheck={false} className={classes(inputClass, "mono h-auto py-1.5")} value={rest} onChange={(event) => setRest(event.target.value)} aria-invalid={isWrong} /></Field>
      {isWrong && <p role="alert" className="text-refused">{t.apps.notJson}</p>}
      {save.error && <p role="alert" className="text-refused">{save.error instanceof ApiError && save.error.status === 409 ? t.apps.moved : save.error.message}</p>}
      <div className="flex flex-wrap items-center gap-3">
        {last?.changed_at && <span className="text-sm text-muted">{t.apps.version(last.version)} · {t.apps.by} {last.changed_by} · <Age at={last.changed_at} /></span>}
        <Button type="submit" look="primary" busy={save.isPending} className="ml-auto">{t.common.save}</Button>
      </div>
    </form>
  );
}
