// Asks for a path: of a new file or folder, or the new one of a file that moves.
import { type FormEvent, useState } from "react";
import { Button, classes, Field, inputClass } from "./basics";
import { tellError } from "./toasts";

export function PathForm({ start, label, action, onSubmit }: { start: string; label: string; action: string; onSubmit: (path: string) => Promise<void> }) {
  const [path, setPath] = useState(start);
  const [busy, setBusy] = useState(false);
  function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    onSubmit(path.trim().replace(/\/+$/, "")).catch(tellError).finally(() => setBusy(false));
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 p-4">
      <Field label={label}>
        <input autoFocus required className={classes(inputClass, "mono")} value={path} onChange={(event) => setPath(event.target.value)} />
      </Field>
      <Button type="submit" look="primary" className="self-end" busy={busy} disabled={!path.trim() || path.endsWith("/") || path === start}>{action}</Button>
    </form>
  );
}
