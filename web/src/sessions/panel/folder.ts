// The session's own folder, through the routes of workspaces.
import { api, body, problem, type Schemas } from "../../api/client";
import { ask, type OpenedSession } from "../queries";

/** The workspace goes by its agent's name. */
export const folderName = (session: OpenedSession) => session.agent;

export const inPath = (path: string) => path.split("/").map(encodeURIComponent).join("/");

export const folderUrl = (session: OpenedSession, path: string) => `/api/v1/workspaces/${folderName(session)}/download?${new URLSearchParams({ path })}`;

async function sent<T>(method: string, url: string, content?: BodyInit, headers: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(url, { method, body: content, headers });
  if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
  return (await answer.json()) as T;
}

/** Puts files into the folder; a name that is taken gets a number. Gives their paths. */
export async function uploadToFolder(session: OpenedSession, files: File[], folder?: string): Promise<string[]> {
  const query = folder === undefined ? "" : `?${new URLSearchParams({ path: folder })}`;
  const paths: string[] = [];
  for (const file of files) {
    const form = new FormData();
    form.append("file", file, file.name);
    const made = await sent<Schemas["FileWriteView"]>("POST", `/api/v1/workspaces/${folderName(session)}/upload${query}`, form);
    paths.push(made.path);
  }
  return paths;
}

/** Fails if the file is not what it was when it was read. */
export async function writeFile(session: OpenedSession, path: string, content: BodyInit, hash?: string | null): Promise<Schemas["FileWriteView"]> {
  const headers: Record<string, string> = { "Content-Type": "application/octet-stream" };
  if (hash) headers["If-Match"] = `"${hash}"`;
  else if (hash === null) headers["If-None-Match"] = "*";
  return await sent("PUT", `/api/v1/workspaces/${folderName(session)}/write/${inPath(path)}`, content, headers);
}

export async function deleteFile(session: OpenedSession, path: string): Promise<void> {
  await sent("DELETE", `/api/v1/workspaces/${folderName(session)}/delete/${inPath(path)}?recursive=true`);
}

export async function renameFile(session: OpenedSession, path: string, target: string): Promise<void> {
  await body(api.POST("/api/v1/workspaces/{workspace}/rename", { params: { path: { workspace: folderName(session) } }, body: { path, target } }));
}

export async function makeFolder(session: OpenedSession, path: string): Promise<void> {
  await body(api.POST("/api/v1/workspaces/{workspace}/mkdir", { params: { path: { workspace: folderName(session) } }, body: { path } }));
}

export const PART = 100_000; // characters of a large file that are shown at once

export const readFile = (session: OpenedSession, path: string, offset: number, signal?: AbortSignal) =>
  ask<Schemas["FileSliceView"]>("GET", `/api/v1/workspaces/${folderName(session)}/read/${inPath(path)}?offset=${offset}&length=${PART}`, undefined, signal);

type FileList = { entries: { path: string; kind: Schemas["Kind"] }[]; next_after: string | null };

const OWN = ".agent_data"; // what the agent program keeps for itself

export async function listFolder(session: OpenedSession, path: string, after: string): Promise<FileList> {
  const found = await ask<FileList>("GET", `/api/v1/workspaces/${folderName(session)}/list?${new URLSearchParams({ ...(path ? { path } : {}), after })}`);
  return { ...found, entries: found.entries.filter((entry) => entry.path !== OWN) };
}
