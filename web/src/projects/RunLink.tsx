import { Link } from "@tanstack/react-router";
import { useText } from "../text";

const RUN = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** From a commit to the message that made it. Runs of other programs have names of their own: those are only shown. */
export function RunLink({ run }: { run: string | null }) {
  const t = useText().log;
  if (!run) return null;
  return RUN.test(run) ? <Link to="/sessions/run/$run" params={{ run }} className="link text-xs">{t.conversation}</Link> : <span className="text-xs text-muted">{run}</span>;
}
