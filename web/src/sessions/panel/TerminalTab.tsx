// A terminal in the session's sandbox, while there is one.
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { useText } from "../../text";
import { Empty, Skeleton } from "../../ui/basics";
import { sessionKeys } from "../queries";
import type { PanelProps } from "./Panel";

const TerminalScreen = lazy(() => import("./TerminalScreen"));

/** Whether it has a size: beside the conversation the panel is hidden where there is no room for it. */
function useIsSeen() {
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (!box) return;
    const watch = new ResizeObserver(() => setSeen(box.offsetWidth > 0));
    watch.observe(box);
    return () => watch.disconnect();
  }, [box]);
  return [setBox, isSeen] as const;
}

export function TerminalTab({ session }: PanelProps) {
  const t = useText().sessions.terminal;
  const client = useQueryClient();
  const [box, isSeen] = useIsSeen();
  // When it ends, the sandbox may have stopped, or the right may be gone.
  const look = useCallback(() => void client.invalidateQueries({ queryKey: sessionKeys.one(session.id) }), [client, session.id]);
  if (!session.has_terminal) return <Empty title={t.denied}>{t.deniedHint}</Empty>;
  if (session.worker?.state !== "running") return <div data-testid="terminal-tab"><Empty title={t.off}>{session.state === "closed" ? t.closedHint : t.offHint}</Empty></div>;
  return (
    <div ref={box} data-testid="terminal-tab" className="flex min-h-0 flex-1 flex-col">
      {isSeen && <Suspense fallback={<Skeleton lines={8} />}><TerminalScreen session={session.id} onOver={look} /></Suspense>}
    </div>
  );
}
