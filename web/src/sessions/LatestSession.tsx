// /sessions: the latest session, or a new one where there is none.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Navigate } from "@tanstack/react-router";
import { Problem, Skeleton } from "../ui/basics";
import { sessionsQuery } from "./queries";

export function LatestSession() {
  const sessions = useInfiniteQuery(sessionsQuery());
  if (sessions.error) return <Problem error={sessions.error} retry={() => void sessions.refetch()} />;
  if (!sessions.data) return <Skeleton lines={6} />;
  const all = sessions.data.pages.flatMap((page) => page.sessions);
  const [latest] = all.sort((a, b) => b.last_active_at.localeCompare(a.last_active_at));
  return latest ? <Navigate to="/sessions/$session" params={{ session: latest.id }} replace /> : <Navigate to="/sessions/new" replace />;
}
