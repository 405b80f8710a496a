// Messages that wait for their turn, above the composer.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { X } from "lucide-react";
import { api, body } from "../api/client";
import { useText } from "../text";
import { IconButton } from "../ui/basics";
import { tellError } from "../ui/toasts";
import { type Run, sessionKeys } from "./queries";

export function QueuedMessages({ session, runs }: { session: string; runs: Run[] }) {
  const t = useText().sessions.composer;
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: (run: string) => body(api.POST("/api/v1/runs/{run}/cancel", { params: { path: { run } } })),
    onSettled: () => void client.invalidateQueries({ queryKey: sessionKeys.one(session) }),
    onError: tellError,
  });
  if (runs.length === 0) return null;
  return (
    <ol aria-label={t.queued} data-testid="queued" className="mx-3 rounded-t-lg border border-b-0 bg-sunken">
      {runs.map((run) => (
        <li key={run.id} className="flex items-center gap-2 border-b px-3 py-0.5 text-sm last:border-b-0">
          <span className={run.mode === "steer" ? "shrink-0 text-merged" : "shrink-0 text-muted"}>{run.mode === "steer" ? t.modes.steer : t.queued}</span>
          <span className="min-w-0 flex-1 truncate" title={run.prompt}>{run.prompt}</span>
          <IconButton label={t.dequeue} className="size-7" disabled={cancel.isPending} onClick={() => cancel.mutate(run.id)}><X size={14} /></IconButton>
        </li>
      ))}
    </ol>
  );
}
