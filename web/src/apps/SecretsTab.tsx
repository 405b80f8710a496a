// Names of sealed secrets. Values go in and never come out.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body } from "../api/client";
import { useText } from "../text";
import { Age, Button, Chip, classes, Field, inputClass, Problem, Skeleton } from "../ui/basics";
import { Table } from "../ui/table";
import { tell, tellError } from "../ui/toasts";
import { LayerChip } from "./ConfigTab";
import { appKeys, type Layer, LAYERS, secretsQuery } from "./queries";

export function SecretsTab({ app, project, manages }: { app: string; project: string | undefined; manages: boolean }) {
  const t = useText().apps;
  const layers: Layer[] = manages ? LAYERS : ["user"];
  return (
    <div className="flex flex-col gap-6">
      <p className="max-w-prose text-muted">{t.secretsHint}</p>
      {layers.map((layer) => <LayerSecrets key={layer} app={app} project={project} layer={layer} />)}
      <NewSecret app={app} project={project} layers={layers} />
    </div>
  );
}

function LayerSecrets({ app, project, layer }: { app: string; project: string | undefined; layer: Layer }) {
  const t = useText();
  const client = useQueryClient();
  const secrets = useQuery(secretsQuery(app, layer, project));
  const remove = useMutation({
    mutationFn: (name: string) => body(api.DELETE("/api/v1/apps/{app}/secrets/{layer}/{name}", { params: { path: { app, layer, name }, query: { app_project: project } } })),
    onSuccess: (_, name) => {
      tell(t.apps.secretRemoved(name));
      void client.invalidateQueries({ queryKey: appKeys.one(app) });
    },
    onError: tellError,
  });
  return (
    <section aria-label={t.apps.layers[layer]}>
      <h2 className="mb-2"><LayerChip layer={layer} /></h2>
      {secrets.isPending && <Skeleton lines={2} className="p-0" />}
      {secrets.error && <Problem error={secrets.error} />}
      {secrets.data?.length === 0 && <p className="text-muted">{t.apps.secretsNone}</p>}
      {!!secrets.data?.length && (
        <Table
          label={t.apps.secrets}
          head={[t.apps.secretName, t.people.state, t.apps.changed, <span key="r" className="sr-only">{t.apps.remove}</span>]}
          rows={secrets.data.map((secret) => ({
            key: secret.name,
            cells: [
              <span key="n"><span className="mono font-medium">{secret.name}</span><span className="mono block text-xs break-all text-muted">{secret.key}</span></span>,
              <Chip key="s" tone="written">{t.apps.sealed}</Chip>,
              <Age key="a" at={secret.changed_at} />,
              <Button key="r" small look="danger" onClick={() => remove.mutate(secret.name)}>{t.apps.remove}</Button>,
            ],
          }))}
        />
      )}
    </section>
  );
}

function NewSecret({ app, project, layers }: { app: string; project: string | undefined; layers: Layer[] }) {
  const t = useText();
  const client = useQueryClient();
  const [values, setValues] = useState({ layer: layers[0] ?? "user", name: "", value: "" });
  const save = useMutation({
    mutationFn: () => body(api.PUT("/api/v1/apps/{app}/secrets/{layer}/{name}", { params: { path: { app, layer: values.layer, name: values.name }, query: { app_project: project } }, body: { value: values.value } })),
    onSuccess: async () => {
      tell(t.apps.secretSaved(values.name));
      setValues({ ...values, name: "", value: "" });
      await client.invalidateQueries({ queryKey: appKeys.one(app) });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    save.mutate();
  }
  return (
    <form onSubmit={submit} className="panel flex flex-col gap-3 p-4">
      <h2 className="font-semibold">{t.apps.secretNew}</h2>
      <div className="grid gap-3 sm:grid-cols-[auto_1fr_1fr]">
        <Field label={t.apps.layer}><select className={inputClass} value={values.layer} onChange={(event) => setValues({ ...values, layer: event.target.value as Layer })}>{layers.map((one) => <option key={one} value={one}>{t.apps.layers[one]}</option>)}</select></Field>
        <Field label={t.apps.secretName}><input required pattern="[A-Za-z0-9][A-Za-z0-9._\-]*" maxLength={100} autoComplete="off" className={classes(inputClass, "mono")} value={values.name} onChange={(event) => setValues({ ...values, name: event.target.value })} /></Field>
        <Field label={t.apps.secretValue}><input required type="password" autoComplete="off" className={inputClass} value={values.value} onChange={(event) => setValues({ ...values, value: event.target.value })} /></Field>
      </div>
      {save.error && <p role="alert" className="text-refused">{save.error.message}</p>}
      <Button type="submit" className="self-end" busy={save.isPending} disabled={!values.name || !values.value}>{t.apps.secretNew}</Button>
    </form>
  );
}
