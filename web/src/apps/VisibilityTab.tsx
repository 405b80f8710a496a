import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Button, classes, Field, inputClass } from "../ui/basics";
import { tell } from "../ui/toasts";
import { appKeys } from "./queries";

type Visibility = Schemas["VisibilityBody"];
const PARTS = ["departments", "roles", "members"] as const;

export function VisibilityTab({ app, visibility }: { app: string; visibility: Visibility }) {
  const t = useText();
  const client = useQueryClient();
  const [texts, setTexts] = useState(() => Object.fromEntries(PARTS.map((part) => [part, visibility[part].join("\n")])) as Record<(typeof PARTS)[number], string>);
  const put = async (wanted: Visibility) => {
    const changed = await body(api.PUT("/api/v1/apps/{app}/visibility", { params: { path: { app } }, body: wanted }));
    client.setQueryData(appKeys.one(app), changed);
    await client.invalidateQueries({ queryKey: appKeys.store });
  };
  const save = useMutation({ mutationFn: put, onSuccess: () => tell(t.apps.saved, { undo: () => put(visibility) }) });
  function submit(event: FormEvent) {
    event.preventDefault();
    const wanted = Object.fromEntries(PARTS.map((part) => [part, texts[part].split(/[\n,]+/).map((one) => one.trim()).filter(Boolean)])) as Visibility;
    save.mutate(wanted);
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <p className="max-w-prose text-muted">{t.apps.visibilityHint}</p>
      <div className="grid gap-4 sm:grid-cols-3">
        {PARTS.map((part) => (
          <Field key={part} label={t.apps[part]} hint={t.apps.onePerLine}>
            <textarea rows={6} spellCheck={false} placeholder={part === "departments" ? "sales" : part === "roles" ? "member" : "user:ann"} className={classes(inputClass, "mono h-auto py-1.5")} value={texts[part]} onChange={(event) => setTexts({ ...texts, [part]: event.target.value })} />
          </Field>
        ))}
      </div>
      {save.error && <p role="alert" className="text-refused">{save.error.message}</p>}
      <Button type="submit" look="primary" className="self-end" busy={save.isPending}>{t.common.save}</Button>
    </form>
  );
}
