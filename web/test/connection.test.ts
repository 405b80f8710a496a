import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveConnection } from "../src/live/connection";

/** A stream that does what the test says. */
class Source {
  static readonly CLOSED = 2;
  static all: Source[] = [];
  static get last(): Source {
    return Source.all[Source.all.length - 1]!;
  }
  readyState = 0;
  onopen: () => void = () => {};
  onerror: () => void = () => {};
  private readonly listeners = new Map<string, (event: object) => void>();
  constructor(readonly url: string) {
    Source.all.push(this);
  }
  addEventListener(name: string, listener: (event: object) => void): void {
    this.listeners.set(name, listener);
  }
  close(): void {
    this.readyState = Source.CLOSED;
  }
  send(scope: string, cursor: string): void {
    this.listeners.get("event")!({ lastEventId: cursor, data: JSON.stringify({ type: "event", scope }) });
  }
}

describe("the live connection", () => {
  let connection: LiveConnection;
  let restarted: string[];
  beforeEach(() => {
    Source.all = [];
    restarted = [];
    vi.stubGlobal("EventSource", Source);
    vi.stubGlobal("BroadcastChannel", undefined);
    Reflect.deleteProperty(window, "BroadcastChannel");
    connection = new LiveConnection();
    connection.onRestart((scope) => restarted.push(scope));
    connection.subscribe("project:a", () => {});
    Source.last.onopen();
  });
  afterEach(() => vi.unstubAllGlobals());

  it("reads nothing twice when it opens", () => {
    expect(restarted).toEqual([]);
  });
  it("has everything read again when it was lost before anything came", () => {
    const before = Source.last;
    window.dispatchEvent(new Event("online"));
    expect(Source.last).not.toBe(before);
    Source.last.onopen();
    expect(restarted).toEqual(["project:a"]);
  });
  it("goes on from its cursor when something came", () => {
    Source.last.send("project:a", "7");
    window.dispatchEvent(new Event("online"));
    Source.last.onopen();
    expect(Source.last.url).toContain("after=7");
    expect(restarted).toEqual([]);
  });
  it("has only that read again which the cursor has no place in", () => {
    Source.last.send("project:a", "7");
    connection.subscribe("project:b", () => {});
    Source.last.onopen();
    window.dispatchEvent(new Event("online"));
    Source.last.onopen();
    expect(restarted).toEqual(["project:b"]);
  });
});
