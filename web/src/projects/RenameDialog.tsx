import { useNavigate } from "@tanstack/react-router";
import type { FileContent } from "../api/queries";
import { useText } from "../text";
import { Dialog } from "../ui/dialog";
import { PathForm } from "../ui/PathForm";
import { commit, report } from "./changes";

export function RenameDialog({ project, path, base, open, onClose }: { project: string; path: string; base: FileContent; open: boolean; onClose: () => void }) {
  const t = useText();
  const navigate = useNavigate();
  async function rename(target: string) {
    const made = await commit(project, [{ action: "rename", path, target }], { seq: base.seq, epoch: base.epoch });
    onClose();
    const now = made.changes[0]?.result_path;
    if (report(project, made, t.file.renamed(target)) && now) void navigate({ to: "/projects/$project/files/$", params: { project, _splat: now } });
  }
  return (
    <Dialog title={t.file.renameTitle} open={open} onClose={onClose}>
      <PathForm start={path} label={t.file.newPath} action={t.common.rename} onSubmit={rename} />
    </Dialog>
  );
}
