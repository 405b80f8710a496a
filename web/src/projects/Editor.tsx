// Edits a file in place. What others changed meanwhile is merged by the gate, or waits in review; nothing is overwritten.
import { useBlocker } from "@tanstack/react-router";
import { useState } from "react";
import type { FileContent } from "../api/queries";
import { useText } from "../text";
import { Button, classes, inputClass } from "../ui/basics";
import { tellError } from "../ui/toasts";
import { commit, report } from "./changes";
import CodeView from "./CodeView";

export default function Editor({ project, found, onDone }: { project: string; found: FileContent; onDone: () => Promise<void> }) {
  const t = useText();
  const [base] = useState(found); // what the edit was made from, whatever happens meanwhile
  const [text, setText] = useState(base.text ?? "");
  const [message, setMessage] = useState("");
  const [busy, setBusy] = useState(false);
  const isChanged = text !== base.text;
  useBlocker({ shouldBlockFn: () => false, enableBeforeUnload: isChanged });

  async function save() {
    if (!isChanged) return await onDone();
    setBusy(true);
    try {
      const made = await commit(project, [{ action: "write", path: base.entry.path, text }], { seq: base.seq, epoch: base.epoch }, message);
      if (report(project, made)) await onDone();
    } catch (error) {
      tellError(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="min-h-0 flex-1">
        <CodeView editable text={base.text ?? ""} path={base.entry.path} label={t.file.editing} onChange={setText} onSave={() => void save()} onEscape={() => !isChanged && void onDone()} />
      </div>
      <form
        className="flex shrink-0 flex-wrap items-center gap-2 border-t p-2"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <input className={classes(inputClass, "!w-auto min-w-32 flex-1")} aria-label={t.file.message} placeholder={t.file.message} value={message} maxLength={10_000} onChange={(event) => setMessage(event.target.value)} />
        <Button onClick={() => void onDone()}>{isChanged ? t.file.discard : t.common.cancel}</Button>
        <Button type="submit" look="primary" busy={busy} disabled={!isChanged} keys="Ctrl S">{t.common.save}</Button>
      </form>
    </div>
  );
}
