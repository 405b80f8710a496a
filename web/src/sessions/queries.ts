// What the pages of sessions ask for.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, ApiError, body, problem, type Schemas } from "../api/client";
import { projectsQuery } from "../api/queries";
import type { ChatMessage, Question } from "./parts";

export type Session = Schemas["SessionView"];
export type OpenedSession = Schemas["OpenedSessionView"];
export type Run = Schemas["RunView"];

export const sessionKeys = {
  all: ["sessions"] as const,
  list: ["sessions", "own"] as const,
  one: (session: string) => ["session", session] as const,
  runs: (session: string) => ["session", session, "runs"] as const,
  shares: (session: string) => ["session", session, "shares"] as const,
  folder: (session: string) => ["session", session, "folder"] as const,
};

/** A request that the generated client has no type for, or whose answer is not JSON it knows. */
export async function ask<T>(method: string, path: string, sent?: unknown, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, { method, signal, headers: sent === undefined ? {} : { "Content-Type": "application/json" }, body: sent === undefined ? undefined : JSON.stringify(sent) });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "offline", "The server does not answer.");
  }
  if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

export const sessionsQuery = () =>
  infiniteQueryOptions({
    queryKey: sessionKeys.list,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ signal, pageParam }) => body(api.GET("/api/v1/sessions", { params: { query: { before: pageParam, limit: 50 } }, signal })),
    getNextPageParam: (last) => last.next_before ?? undefined,
  });

/** What others share with the reader. */
export const sharedSessionsQuery = () =>
  queryOptions({ queryKey: [...sessionKeys.all, "shared"] as const, queryFn: async ({ signal }) => (await body(api.GET("/api/v1/shared-sessions", { params: { query: { limit: 100 } }, signal }))).sessions });

export const sessionQuery = (session: string) =>
  queryOptions({
    queryKey: sessionKeys.one(session),
    queryFn: ({ signal }) => body(api.GET("/api/v1/sessions/{session}", { params: { path: { session } }, signal })),
  });

export const runsQuery = (session: string, limit = 20) =>
  queryOptions({
    queryKey: [...sessionKeys.runs(session), limit] as const,
    queryFn: ({ signal }) => body(api.GET("/api/v1/sessions/{session}/runs", { params: { path: { session }, query: { limit } }, signal })),
  });

export const agentsQuery = () => queryOptions({ queryKey: ["agents"], staleTime: 300_000, queryFn: ({ signal }) => body(api.GET("/api/v1/agents", { signal })) });

export type MessagePage = { messages: ChatMessage[]; next_before: number | string | null };

export async function readMessages(session: string, before?: number | string, signal?: AbortSignal): Promise<MessagePage> {
  const query = new URLSearchParams({ limit: "50" });
  if (before !== undefined) query.set("before", String(before));
  return await ask<MessagePage>("GET", `/api/v1/chat/${session}/messages?${query}`, undefined, signal);
}

/** The conversation as it is when its page opens; from then on the page follows it. */
export const conversationQuery = (session: string) =>
  queryOptions({ queryKey: ["chat", session] as const, staleTime: Infinity, gcTime: 10_000, queryFn: ({ signal }) => readMessages(session, undefined, signal) });

export type WaitingQuestion = Question & { session_id: string };

export const questionsQuery = () =>
  queryOptions({
    queryKey: ["questions", "pending"] as const,
    refetchInterval: 20_000,
    queryFn: async ({ signal }): Promise<WaitingQuestion[]> => {
      const { questions } = await body(api.GET("/api/v1/human-loop", { params: { query: { state: "pending" } }, signal }));
      return questions.map((one) => ({ ...one, state: one.status }));
    },
  });

export type TodoEvent = Schemas["TodoEventView"];

/** What happened to the run's todo list, from its beginning. */
export const todoEventsQuery = (run: string | undefined) =>
  queryOptions({
    queryKey: ["run", run, "todos"] as const,
    enabled: run !== undefined,
    queryFn: async ({ signal }) => (await body(api.GET("/api/v1/runs/{run}/todos/events", { params: { path: { run: run ?? "" }, query: { limit: 500 } }, signal }))).changes,
  });

/** The name of a project by its id. */
export const projectNamesQuery = () => ({ ...projectsQuery(), select: (found: Schemas["ProjectView"][]) => new Map(found.map((one) => [one.id, one.name])) });

// What the server fills in need not be said.
export const createSession = (wanted: Partial<Schemas["SessionCreate"]> & ({ project: string } | { app: string })) => body(api.POST("/api/v1/sessions", { body: wanted as Schemas["SessionCreate"] }));

export const sendMessage = (session: string, message: string, wanted: Partial<Schemas["RunCreate"]> = {}) =>
  body(api.POST("/api/v1/sessions/{session}/runs", { params: { path: { session } }, body: { ...wanted, message } as Schemas["RunCreate"] }));
