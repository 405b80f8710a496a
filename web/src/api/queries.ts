// What pages ask for. A snapshot never changes, so it is asked for once; "head" is read again when an event says so.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ApiError, api, body, contentUrl, problem, type Entry, type Schemas } from "./client";

export type At = number | undefined; // a snapshot; undefined: now
export const LARGEST_SHOWN = 2_000_000;

export const keys = {
  me: ["me"] as const,
  projects: ["projects"] as const,
  project: (project: string) => ["project", project] as const,
  at: (project: string, at: At, what: string, path: string) => ["project", project, "at", at ?? "head", what, path] as const,
  log: (project: string) => ["project", project, "log"] as const,
  versions: (project: string, path: string) => ["project", project, "at", "head", "versions", path] as const,
  reviews: (project: string) => ["reviews", project] as const,
  workspaces: (project: string) => ["project", project, "workspaces"] as const,
};

const staleTime = (at: At) => (at === undefined ? 30_000 : Infinity);

export const meQuery = () =>
  queryOptions({ queryKey: keys.me, queryFn: ({ signal }) => body(api.GET("/api/v1/me", { signal })), staleTime: 60_000, retry: false });

/** How people log in, beside passwords and tokens. */
export const loginWaysQuery = () =>
  queryOptions({
    queryKey: ["login-ways"],
    queryFn: async ({ signal }): Promise<{ oidc: string | null }> => {
      const answer = await fetch("/login/ways", { signal });
      if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
      return answer.json();
    },
    staleTime: Infinity,
  });

export const projectsQuery = () =>
  queryOptions({
    queryKey: keys.projects,
    queryFn: async ({ signal }) => {
      const found = [];
      for (let after: string | null = ""; after !== null; ) {
        const page: Schemas["ProjectPage"] = await body(api.GET("/api/v1/projects", { params: { query: { after, limit: 1000 } }, signal }));
        found.push(...page.projects);
        after = page.next_after;
      }
      return found;
    },
  });

export const projectQuery = (project: string) =>
  queryOptions({
    queryKey: keys.project(project),
    queryFn: ({ signal }) => body(api.GET("/api/v1/projects/{project}", { params: { path: { project } }, signal })),
  });

export type FileContent = {
  entry: Entry;
  seq: number;
  epoch: string;
  text: string | null; // null: not text
  isCut: boolean;
};

/** A file or folder in a snapshot, with its text if it is text; null when nothing is there. */
export const fileQuery = (project: string, path: string, at: At) =>
  queryOptions({
    queryKey: keys.at(project, at, "file", path),
    staleTime: staleTime(at),
    queryFn: async ({ signal }): Promise<FileContent | null> => {
      const found = await body(api.POST("/api/v1/checkouts", { body: { project, paths: [path], seq: at, recursive: true, contents: false, after: "", limit: 1 }, signal }));
      const entry = found.entries[0];
      if (!entry) {
        const below = await body(api.POST("/api/v1/checkouts", { body: { project, prefix: path, seq: at, recursive: false, contents: false, after: "", limit: 1 }, signal }));
        if (below.entries.length === 0) return null;
        return { entry: { path, kind: "directory", node_id: null, number: null, seq: null, hash: null, size: 0, executable: false, mime: "" }, seq: below.seq, epoch: below.epoch, text: null, isCut: false };
      }
      const shared = { entry, seq: found.seq, epoch: found.epoch };
      if (entry.kind === "directory" || entry.mime.startsWith("image/") || entry.mime === "application/pdf") return { ...shared, text: null, isCut: false };
      if (entry.size === 0) return { ...shared, text: "", isCut: false };
      const isCut = entry.size > LARGEST_SHOWN;
      const answer = await fetch(contentUrl(project, path, found.seq), { signal, headers: isCut ? { Range: `bytes=0-${LARGEST_SHOWN - 1}` } : {} }).catch(unanswered);
      if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
      return { ...shared, text: decoded(await answer.arrayBuffer(), isCut), isCut };
    },
  });

/** A later part of a file that is too long to be shown at once. */
export const filePartQuery = (project: string, path: string, seq: number, offset: number) =>
  queryOptions({
    queryKey: keys.at(project, seq, `part ${offset}`, path),
    staleTime: Infinity,
    gcTime: 60_000,
    queryFn: async ({ signal }) => {
      const answer = await fetch(contentUrl(project, path, seq), { signal, headers: { Range: `bytes=${offset}-${offset + LARGEST_SHOWN - 1}` } }).catch(unanswered);
      if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
      return decodedPart(await answer.arrayBuffer());
    },
  });

/** The text from somewhere in a file: letters that are cut in two at either end are left out. */
export function decodedPart(bytes: ArrayBuffer): string {
  const found = new Uint8Array(bytes);
  const first = found.findIndex((byte) => (byte & 0xc0) !== 0x80);
  return new TextDecoder("utf-8").decode(found.subarray(Math.max(0, first)), { stream: true });
}

/** A server that does not answer is asked again, as for everything else. */
function unanswered(error: unknown): never {
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  throw new ApiError(0, "offline", "The server does not answer.");
}

/** The text, or null where the bytes are not text. */
export function decoded(bytes: ArrayBuffer, isCut: boolean): string | null {
  const found = new Uint8Array(bytes);
  if (found.subarray(0, 8000).includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(found, { stream: isCut });
  } catch {
    return null;
  }
}

export type LogFilter = { path?: string; principal?: string; run?: string };

export const logQuery = (project: string, filter: LogFilter = {}, limit = 50) =>
  infiniteQueryOptions({
    queryKey: [...keys.log(project), filter, limit] as const,
    initialPageParam: undefined as number | undefined,
    queryFn: ({ signal, pageParam }) =>
      body(api.GET("/api/v1/commits", { params: { query: { project, ...filter, before: pageParam, limit } }, signal })),
    getNextPageParam: (last) => last.next_before ?? undefined,
  });

export const versionsQuery = (project: string, path: string) =>
  infiniteQueryOptions({
    queryKey: keys.versions(project, path),
    initialPageParam: undefined as number | undefined,
    queryFn: ({ signal, pageParam }) =>
      body(api.GET("/api/v1/versions", { params: { query: { project, path, before: pageParam, limit: 50 } }, signal })),
    getNextPageParam: (last) => last.next_before ?? undefined,
  });

export const blameQuery = (project: string, path: string, at: At) =>
  queryOptions({
    queryKey: keys.at(project, at, "blame", path),
    staleTime: staleTime(at),
    queryFn: ({ signal }) =>
      body(api.GET("/api/v1/history/blame", { params: { query: { project, path, at: at === undefined ? "head" : String(at), limit: 50_000 } }, signal })),
  });

export const reviewsQuery = (project: string, state?: "open" | "resolved" | "rejected" | "obsolete", path?: string) =>
  queryOptions({
    queryKey: [...keys.reviews(project), "list", state ?? "", path ?? ""] as const,
    queryFn: ({ signal }) => body(api.GET("/api/v1/reviews", { params: { query: { project, state, path, limit: 100 } }, signal })),
  });

export const reviewQuery = (project: string, id: string) =>
  queryOptions({
    queryKey: [...keys.reviews(project), "one", id] as const,
    queryFn: ({ signal }) => body(api.GET("/api/v1/reviews/{review_id}", { params: { path: { review_id: id }, query: { project } }, signal })),
  });

export const workspacesQuery = (project: string, state?: "open") =>
  queryOptions({
    queryKey: [...keys.workspaces(project), state ?? ""] as const,
    queryFn: ({ signal }) => body(api.GET("/api/v1/workspaces", { params: { query: { project, state, limit: 100 } }, signal })),
  });

export const diffQuery = (project: string, old: string, now: string, path: string | undefined) =>
  infiniteQueryOptions({
    queryKey: ["project", project, "diff", old, now, path ?? ""] as const,
    initialPageParam: "",
    queryFn: ({ signal, pageParam }) =>
      body(api.GET("/api/v1/history/diff", { params: { query: { project, old, new: now, path: path || undefined, after: pageParam, limit: 50 } }, signal })),
    getNextPageParam: (last) => last.next_after ?? undefined,
    retry: (count, error) => count < 2 && error instanceof ApiError && error.status >= 500,
  });
