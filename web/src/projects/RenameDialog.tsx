import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { FileContent } from "../api/queries";
import { useText } from "../text";
import { Button, classes, Field, inputClass } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { tellError } from "../ui/toasts";
import { commit, report } from "./changes";

export function RenameDialog({ project, path, base, open, onClose }: { project: string; path: string; base: FileContent; open: boolean; onClose: () => void }) {
  const t = useText();
  const navigate = useNavigate();
  const [target, setTarget] = useState(path);
  async function submit(event: FormEvent) {
    event.preventDefault();
    try {
      const made = await commit(project, [{ action: "rename", path, target: target.trim() }], { seq: base.seq, epoch: base.epoch });
      onClose();
      const now = made.changes[0]?.result_path;
      if (report(project, made, t.file.renamed(target.trim())) && now) void navigate({ to: "/projects/$project/files/$", params: { project, _splat: now } });
    } catch (error) {
      tellError(error);
    }
  }
  return (
    <Dialog title={t.file.renameTitle} open={open} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-4 p-4">
        <Field label={t.file.newPath}>
          <input autoFocus required className={classes(inputClass, "mono")} value={target} onChange={(event) => setTarget(event.target.value)} />
        </Field>
        <Button type="submit" look="primary" className="self-end" disabled={!target.trim() || target === path}>{t.common.rename}</Button>
      </form>
    </Dialog>
  );
}
