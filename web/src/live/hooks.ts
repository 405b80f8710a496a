// What pages do with events: they read again what changed, and nothing else.
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { keys } from "../api/queries";
import { LiveConnection, type LiveItem, type LiveStatus } from "./connection";

let connection: LiveConnection | null = null;

export function live(): LiveConnection {
  connection ??= new LiveConnection();
  return connection;
}

export function useLiveStatus(): LiveStatus {
  return useSyncExternalStore(
    (listener) => live().onStatus(listener),
    () => live().status,
  );
}

const CALM_MS = 400; // busy projects land many commits a second; pages follow in steps
const MOST_LIVE = 12; // one connection takes 16 scopes, for all tabs
const LISTENERS = new Map<string, Set<(changed: Changed) => void>>();

export type Changed = { paths: string[]; everything: boolean };

/** Calls back with what commits changed in a project, several at once. */
export function onProjectChange(project: string, listener: (changed: Changed) => void): () => void {
  const listeners = LISTENERS.get(project) ?? new Set();
  listeners.add(listener);
  LISTENERS.set(project, listeners);
  return () => listeners.delete(listener);
}

class Gatherer {
  private paths = new Set<string>();
  private everything = false;
  private head = 0;
  private reviews = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly project: string,
    private readonly client: QueryClient,
  ) {}

  take(item: LiveItem): void {
    if (item.type === "commit") {
      for (const change of item.changes) {
        this.paths.add(change.path);
        if (change.previous_path) this.paths.add(change.previous_path);
      }
      this.everything ||= item.left_off > 0;
      this.reviews = true; // a commit may open, change or settle items
      this.head = Math.max(this.head, item.seq);
    } else {
      this.reviews ||= item.kind.startsWith("review");
    }
    this.timer ??= setTimeout(() => this.tell(), CALM_MS);
  }

  restart(): void {
    this.everything = true;
    this.reviews = true;
    this.timer ??= setTimeout(() => this.tell(), 0);
  }

  private tell(): void {
    const { client, project } = this;
    const changed = { paths: [...this.paths], everything: this.everything };
    this.timer = undefined;
    void client.invalidateQueries({ queryKey: keys.project(project), exact: true });
    void client.invalidateQueries({ queryKey: keys.log(project) });
    if (this.reviews) void client.invalidateQueries({ queryKey: keys.reviews(project) });
    void client.invalidateQueries({ queryKey: keys.workspaces(project) });
    void client.invalidateQueries({
      predicate: ({ queryKey: key }) =>
        key[0] === "project" && key[1] === project && key[2] === "at" && key[3] === "head" &&
        (changed.everything || this.paths.has(String(key[5]))),
    });
    LISTENERS.get(project)?.forEach((listener) => listener(changed));
    this.paths = new Set();
    this.everything = this.reviews = false;
  }
}

/** Keeps everything about these projects up to date while a page shows it. */
export function useLiveProjects(projects: string[]): void {
  const client = useQueryClient();
  const names = projects.slice(0, MOST_LIVE).join(" "); // names have no spaces
  useEffect(() => {
    const stops = names.split(" ").filter(Boolean).map((project) => {
      const gatherer = new Gatherer(project, client);
      const unsubscribe = live().subscribe(`project:${project}`, (item) => gatherer.take(item));
      const unsubscribeRestart = live().onRestart((scope) => scope === `project:${project}` && gatherer.restart());
      return () => {
        unsubscribe();
        unsubscribeRestart();
      };
    });
    return () => stops.forEach((stop) => stop());
  }, [names, client]);
}

export function useLiveProject(project: string): void {
  useLiveProjects([project]);
}
