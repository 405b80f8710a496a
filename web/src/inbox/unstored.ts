// Sessions whose files could not be stored again and again: they are kept where they are until somebody looks.
import { queryOptions } from "@tanstack/react-query";
import { api, body } from "../api/client";
import type { OpenedSession } from "../sessions/queries";

const MOST_SESSIONS = 30;

export const unstoredQuery = () =>
  queryOptions({
    queryKey: ["sessions", "unstored"] as const,
    refetchInterval: 60_000,
    queryFn: async ({ signal }): Promise<OpenedSession[]> => {
      const { sessions } = await body(api.GET("/api/v1/sessions", { params: { query: { alerted: true, limit: MOST_SESSIONS } }, signal }));
      return await Promise.all(sessions.map(({ id }) => body(api.GET("/api/v1/sessions/{session}", { params: { path: { session: id } }, signal }))));
    },
  });
