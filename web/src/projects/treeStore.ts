// The files of a project as a tree of which only the open folders are known. Made for 100,000 rows: rows are made once
// per entry and shared, and opening or closing a folder copies references only.
import type { Entry } from "../api/client";

export type Row = { path: string; name: string; depth: number; kind: Entry["kind"]; isFolder: boolean };
export type Page = { entries: Pick<Entry, "path" | "kind">[]; next: string | null };
/** Reads the entries of a folder ("": the root) after one of them. */
export type ReadFolder = (folder: string, after: string) => Promise<Page>;

type Folder = { folders: Row[]; files: Row[]; isLoading: boolean; isRead: boolean; error: unknown };

const YIELD = () => new Promise<void>((resolve) => setTimeout(resolve));

export class TreeStore {
  private readonly known = new Map<string, Folder>();
  private readonly open = new Set<string>([""]);
  private readonly listeners = new Set<() => void>();
  private generation = 0;
  private flat: Row[] | null = null;

  constructor(private readonly read: ReadFolder) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** What is shown, from top to bottom. The same array until something changes. */
  rows = (): Row[] => (this.flat ??= this.flattened());

  isOpen(path: string): boolean {
    return this.open.has(path);
  }

  get isLoading(): boolean {
    return [...this.open].some((path) => this.known.get(path)?.isLoading);
  }

  get isRootRead(): boolean {
    return this.known.get("")?.isRead ?? false;
  }

  get error(): unknown {
    return this.known.get("")?.error;
  }

  start(): void {
    if (!this.known.has("")) void this.load("");
  }

  expand(path: string): void {
    if (this.open.has(path)) return;
    this.open.add(path);
    if (!this.known.has(path)) void this.load(path);
    this.changed();
  }

  collapse(path: string): void {
    if (this.open.delete(path)) this.changed();
  }

  toggle(path: string): void {
    if (this.open.has(path)) this.collapse(path);
    else this.expand(path);
  }

  collapseAll(): void {
    this.open.clear();
    this.open.add("");
    this.changed();
  }

  /** Opens every folder above a path, so that its row can be shown. */
  reveal(path: string): void {
    const parts = path.split("/");
    for (let count = 1; count < parts.length; count++) this.expand(parts.slice(0, count).join("/"));
  }

  /** Reads again the folders that changes touch, as far as they were read. */
  refresh(paths: string[], everything = false): void {
    const touched = new Set(paths.flatMap(foldersAbove));
    for (const [path, folder] of this.known) {
      if (!folder.isLoading && (everything || touched.has(path))) {
        if (this.open.has(path)) void this.load(path);
        else this.known.delete(path);
      }
    }
  }

  private async load(path: string): Promise<void> {
    const before = this.known.get(path);
    const depth = path === "" ? 0 : path.split("/").length;
    const found: Folder = { folders: [], files: [], isLoading: true, isRead: false, error: null };
    // What was there stays on show until the new list is whole; a first list shows as it comes.
    if (before) this.known.set(path, { ...before, isLoading: true });
    else this.known.set(path, found);
    this.changed();
    try {
      for (let after: string | null = ""; after !== null; ) {
        const page: Page = await this.read(path, after);
        for (const entry of page.entries) {
          const isFolder = entry.kind === "directory";
          const row = { path: entry.path, name: entry.path.slice(path ? path.length + 1 : 0), depth, kind: entry.kind, isFolder };
          (isFolder ? found.folders : found.files).push(row);
        }
        after = page.next;
        if (after !== null) {
          if (!before) this.changed();
          await YIELD();
        }
      }
      found.isRead = true;
    } catch (error) {
      found.error = error;
    }
    found.isLoading = false;
    if (!found.error || !before) this.known.set(path, found);
    else this.known.set(path, { ...before, isLoading: false, error: found.error });
    this.changed();
  }

  private flattened(): Row[] {
    const rows: Row[] = [];
    const visit = (path: string) => {
      const folder = this.known.get(path);
      if (!folder) return;
      for (const row of folder.folders) {
        rows.push(row);
        if (this.open.has(row.path)) visit(row.path);
      }
      for (const row of folder.files) rows.push(row);
    };
    visit("");
    return rows;
  }

  get version(): number {
    return this.generation;
  }

  private changed(): void {
    this.flat = null;
    this.generation += 1;
    this.listeners.forEach((listener) => listener());
  }
}

export function foldersAbove(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, count) => parts.slice(0, count).join("/"));
}
