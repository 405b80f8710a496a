// The typed client of the server's public API. Types come from its OpenAPI document (schema.d.ts is generated).
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Project = Schemas["ProjectView"];
export type Entry = Schemas["EntryView"];
export type Version = Schemas["VersionView"];
export type LogEntry = Schemas["LogEntryView"];
export type FileDiff = Schemas["FileDiffView"];
export type Review = Schemas["ReviewView"];
export type ReviewDetail = Schemas["ReviewDetail"];
export type Workspace = Schemas["WorkspaceView"];

export const api = createClient<paths>({ baseUrl: window.location.origin, credentials: "same-origin" });

/** What the server answered, with its stable code; `offline` when it did not answer at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The body of an answer; throws what the server says is wrong. */
export async function body<T>(asked: Promise<Answer<T>>): Promise<NonNullable<T>> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "offline", "The server does not answer.");
  }
  if (answer.response.ok) return (answer.data ?? undefined) as NonNullable<T>;
  throw problem(answer.response, answer.error);
}

export function problem(response: Response, found: unknown): ApiError {
  const told = (typeof found === "object" && found ? found : {}) as { code?: string; detail?: string; title?: string };
  const retryAfter = Number(response.headers.get("retry-after")) || undefined;
  return new ApiError(
    response.status,
    told.code ?? `http_${response.status}`,
    told.detail ?? told.title ?? response.statusText,
    retryAfter,
  );
}

/** The address of a file's bytes, for images and downloads. */
export function contentUrl(project: string, path: string, seq?: number): string {
  const query = new URLSearchParams({ project, path });
  if (seq !== undefined) query.set("seq", String(seq));
  return `/api/v1/versions/content?${query}`;
}
