// Sessions whose last run failed: somebody has to look at them.
import { queryOptions } from "@tanstack/react-query";
import { api, body } from "../api/client";
import type { Run, Session } from "../sessions/queries";

const MOST_SESSIONS = 30;
const LOOKS_BACK_MS = 7 * 86_400_000;

export const failedRunsQuery = () =>
  queryOptions({
    queryKey: ["sessions", "failed"] as const,
    refetchInterval: 60_000,
    queryFn: async ({ signal }): Promise<{ session: Session; run: Run }[]> => {
      const { sessions } = await body(api.GET("/api/v1/sessions", { params: { query: { limit: MOST_SESSIONS } }, signal }));
      const recent = sessions.filter((one) => one.state === "open" && one.last_run > 0 && Date.now() - new Date(one.last_active_at).getTime() < LOOKS_BACK_MS);
      const last = await Promise.all(recent.map(async (session) => ({ session, run: (await body(api.GET("/api/v1/sessions/{session}/runs", { params: { path: { session: session.id }, query: { limit: 1 } }, signal }))).runs[0] })));
      return last.flatMap(({ session, run }) => (run?.state === "failed" ? [{ session, run }] : []));
    },
  });
