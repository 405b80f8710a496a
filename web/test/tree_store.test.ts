import { describe, expect, it, vi } from "vitest";
import { foldersAbove, type Page, TreeStore } from "../src/projects/treeStore";

/** A tree of paths, read two entries at a time. */
function storeOf(paths: string[]) {
  const asked: string[] = [];
  const read = async (folder: string, after: string): Promise<Page> => {
    asked.push(folder);
    const prefix = folder ? `${folder}/` : "";
    const below = paths.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length).split("/"));
    const names = new Map(below.map((parts) => [parts[0] ?? "", parts.length > 1]));
    const entries = [...names].sort().map(([name, isFolder]) => ({ path: prefix + name, kind: isFolder ? ("directory" as const) : ("file" as const) }));
    const rest = entries.filter((entry) => entry.path > after);
    return { entries: rest.slice(0, 2), next: rest.length > 2 ? (rest[1]?.path ?? null) : null };
  };
  const store = new TreeStore(read);
  const shown = () => store.rows().map((row) => `${"  ".repeat(row.depth)}${row.name}`);
  return { store, shown, asked, paths };
}

describe("the tree of files", () => {
  it("shows folders first, then files, through all pages", async () => {
    const { store, shown } = storeOf(["a.md", "b/x.md", "c.md", "d.md", "e/y.md"]);
    store.start();
    await vi.waitFor(() => expect(shown()).toEqual(["b", "e", "a.md", "c.md", "d.md"]));
    expect(store.isRootRead).toBe(true);
  });

  it("opens the folders above a file that is to be shown", async () => {
    const { store, shown } = storeOf(["b/c/x.md", "z.md"]);
    store.start();
    store.reveal("b/c/x.md");
    await vi.waitFor(() => expect(shown()).toEqual(["b", "  c", "    x.md", "z.md"]));
    store.collapse("b");
    expect(shown()).toEqual(["b", "z.md"]);
  });

  it("reads again only the folders that a change touches", async () => {
    const { store, shown, asked, paths } = storeOf(["a/x.md", "b/y.md"]);
    store.start();
    store.expand("a");
    store.expand("b");
    await vi.waitFor(() => expect(shown()).toHaveLength(4));
    asked.length = 0;
    paths.push("b/z.md");
    store.refresh(["b/z.md"]);
    await vi.waitFor(() => expect(shown()).toEqual(["a", "  x.md", "b", "  y.md", "  z.md"]));
    expect(asked.sort()).toEqual(["", "b"]);
  });

  it("gives the same rows until something changes", async () => {
    const { store } = storeOf(["a.md"]);
    store.start();
    await vi.waitFor(() => expect(store.rows()).toHaveLength(1));
    expect(store.rows()).toBe(store.rows());
  });

  it("keeps what it showed when reading again fails", async () => {
    let fails = false;
    const store = new TreeStore(async () => {
      if (fails) throw new Error("offline");
      return { entries: [{ path: "a.md", kind: "file" }], next: null };
    });
    store.start();
    await vi.waitFor(() => expect(store.isRootRead).toBe(true));
    fails = true;
    store.refresh([], true);
    await vi.waitFor(() => expect(store.error).toBeInstanceOf(Error));
    expect(store.rows().map((row) => row.name)).toEqual(["a.md"]);
  });
});

it("names the folders above a path, the root first", () => {
  expect(foldersAbove("a/b/c.md")).toEqual(["", "a", "a/b"]);
});
