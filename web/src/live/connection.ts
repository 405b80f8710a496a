// One event connection for the whole browser: one tab holds it (a Web Lock says which) and passes everything on to the
// others. Where there are no locks (plain HTTP from another machine), each tab has its own.
import { ApiError, problem, type Schemas } from "../api/client";

export type LiveItem = Schemas["ScopedCommitItem"] | Schemas["ScopedEventItem"];
export type LiveStatus = { state: "connecting" | "live" | "lost"; since: number };
type Message =
  | { type: "hello" }
  | { type: "want"; tab: string; scopes: string[] }
  | { type: "bye"; tab: string }
  | { type: "item"; item: LiveItem; cursor: string | null; covered: string[] }
  | { type: "status"; status: LiveStatus }
  | { type: "restart"; scope: string }
  | { type: "refused"; status: number; code: string };

const MOST_SCOPES = 16; // the server's limit
const ASK_AGAIN_MS = 30_000;
const FORGET_MS = 100_000;
const LONGEST_PAUSE_MS = 15_000;

/** The scopes that all tabs want together, each once, those of this tab first. */
export function union(own: string[], others: Iterable<string[]>): string[] {
  return [...new Set([...own, ...[...others].flat()])].slice(0, MOST_SCOPES);
}

export class LiveConnection {
  status: LiveStatus = { state: "connecting", since: Date.now() };
  isHolder = false;
  private readonly tab = Math.random().toString(36).slice(2);
  private readonly wanted = new Map<string, Set<(item: LiveItem) => void>>();
  private readonly others = new Map<string, { scopes: string[]; at: number }>();
  private readonly statusListeners = new Set<() => void>();
  private readonly channel: BroadcastChannel | null;
  private source: EventSource | null = null;
  private opened: string[] = [];
  private cursor: string | null = null;
  private failures = 0;
  private hasFollowed = false; // another tab had the connection
  private covered = new Set<string>(); // the scopes that the cursor has a place in
  private readonly unsure = new Set<string>(); // scopes of which something may have been missed
  private retry: ReturnType<typeof setTimeout> | undefined;
  private readonly without = new Set<string>(); // scopes the server refuses
  /** Called when the login is not good any more. */
  onRefused: (error: ApiError) => void = () => {};
  private readonly restarts = new Set<(scope: string) => void>();

  constructor() {
    this.channel = "BroadcastChannel" in window ? new BroadcastChannel("contextbase-live") : null;
    if (this.channel) this.channel.onmessage = (event) => this.receive(event.data as Message);
    window.addEventListener("pagehide", () => this.channel?.postMessage({ type: "bye", tab: this.tab } satisfies Message));
    window.addEventListener("online", () => this.isHolder && this.open(true));
    if (this.channel && navigator.locks) {
      void navigator.locks.request("contextbase-live", () => {
        this.hold();
        return new Promise(() => {}); // until this tab goes
      });
    } else {
      this.hold();
    }
  }

  subscribe(scope: string, listener: (item: LiveItem) => void): () => void {
    const listeners = this.wanted.get(scope) ?? new Set();
    listeners.add(listener);
    this.wanted.set(scope, listeners);
    this.announce();
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.wanted.get(scope) === listeners) this.wanted.delete(scope);
      this.announce();
    };
  }

  /** When a scope's past was replaced by a restore: everything about it must be read again. */
  onRestart(listener: (scope: string) => void): () => void {
    this.restarts.add(listener);
    return () => this.restarts.delete(listener);
  }

  onStatus(listener: () => void): () => void {
    this.statusListeners.add(listener);
    return () => this.statusListeners.delete(listener);
  }

  private hold(): void {
    this.isHolder = true;
    if (this.hasFollowed) this.doubt([...this.wanted.keys()]);
    this.channel?.postMessage({ type: "hello" } satisfies Message);
    setInterval(() => {
      this.channel?.postMessage({ type: "hello" } satisfies Message);
      for (const [tab, one] of this.others) if (Date.now() - one.at > FORGET_MS) this.others.delete(tab);
      this.open();
    }, ASK_AGAIN_MS);
    this.open();
  }

  private announce(): void {
    if (this.isHolder) this.open();
    else this.channel?.postMessage({ type: "want", tab: this.tab, scopes: [...this.wanted.keys()] } satisfies Message);
  }

  private receive(message: Message): void {
    switch (message.type) {
      case "hello":
        this.hasFollowed = true;
        if (!this.isHolder) this.announce();
        break;
      case "want":
        this.others.set(message.tab, { scopes: message.scopes, at: Date.now() });
        if (this.isHolder) {
          this.open();
          this.channel?.postMessage({ type: "status", status: this.status } satisfies Message);
        }
        break;
      case "bye":
        this.others.delete(message.tab);
        if (this.isHolder) this.open();
        break;
      case "item":
        this.cursor = message.cursor; // from where this tab goes on, if it must
        this.covered = new Set(message.covered);
        this.deliver(message.item);
        break;
      case "status":
        this.hasFollowed = true;
        this.setStatus(message.status);
        break;
      case "restart":
        this.restarts.forEach((listener) => listener(message.scope));
        break;
      case "refused":
        this.onRefused(new ApiError(message.status, message.code, ""));
    }
  }

  /** Connects if what is wanted is not what is connected. */
  private open(again = false): void {
    const scopes = union([...this.wanted.keys()], [...this.others.values()].map((one) => one.scopes)).filter((one) => !this.without.has(one));
    const same = this.source !== null && scopes.length === this.opened.length && scopes.every((one) => this.opened.includes(one));
    if (same && !again) return;
    if (this.source) this.doubt(this.opened);
    this.source?.close();
    this.source = null;
    this.opened = scopes;
    clearTimeout(this.retry);
    if (scopes.length === 0) return;
    const source = new EventSource(`/api/v1/events?${this.query(scopes)}`);
    this.source = source;
    source.onopen = () => {
      this.failures = 0;
      this.tellStatus("live");
      this.restart(scopes.filter((one) => this.unsure.delete(one)));
    };
    source.onerror = () => {
      if (this.source !== source) return;
      this.tellStatus("lost");
      if (source.readyState === EventSource.CLOSED) void this.refused(scopes);
    };
    const take = (event: MessageEvent<string>) => {
      this.cursor = event.lastEventId || this.cursor;
      this.covered = new Set(scopes);
      const item = JSON.parse(event.data) as LiveItem;
      this.channel?.postMessage({ type: "item", item, cursor: this.cursor, covered: scopes } satisfies Message);
      this.deliver(item);
    };
    source.addEventListener("commit", take);
    source.addEventListener("event", take);
  }

  /** The connection goes: what comes meanwhile is sent later only where the cursor has a place to go on from. */
  private doubt(scopes: string[]): void {
    scopes.filter((one) => !this.covered.has(one)).forEach((one) => this.unsure.add(one));
  }

  private query(scopes: string[], extra: Record<string, string> = {}): string {
    const query = new URLSearchParams(scopes.map((scope) => ["scope", scope]));
    if (this.cursor) query.set("after", this.cursor);
    for (const [name, value] of Object.entries(extra)) query.set(name, value);
    return query.toString();
  }

  /** An event source does not say why it was refused: ask, and do what helps. */
  private async refused(scopes: string[]): Promise<void> {
    this.source = null;
    this.failures += 1;
    this.doubt(scopes);
    try {
      const answer = await fetch(`/api/v1/events?${this.query(scopes, { limit: "1" })}`);
      if (!answer.ok) {
        const error = problem(answer, await answer.json().catch(() => null));
        if (error.status === 409) {
          this.cursor = null;
          this.covered.clear();
          this.restart(scopes);
        } else if (error.status === 404) {
          await this.leaveOut(scopes);
        } else if (error.status === 401) {
          this.channel?.postMessage({ type: "refused", status: 401, code: error.code } satisfies Message);
          this.onRefused(error);
        }
      }
    } catch {
      // It does not answer: try again below.
    }
    const pause = Math.min(LONGEST_PAUSE_MS, 500 * 2 ** this.failures);
    this.retry = setTimeout(() => this.open(true), pause);
  }

  /** One project that is gone must not keep the others from being live. */
  private async leaveOut(scopes: string[]): Promise<void> {
    for (const scope of scopes) {
      const answer = await fetch(`/api/v1/events?${new URLSearchParams({ scope, limit: "1" })}`);
      if (answer.status === 404) this.without.add(scope);
    }
  }

  /** Everything about these scopes must be read again, in all tabs. */
  private restart(scopes: string[]): void {
    for (const scope of scopes) {
      this.channel?.postMessage({ type: "restart", scope } satisfies Message);
      this.restarts.forEach((listener) => listener(scope));
    }
  }

  private deliver(item: LiveItem): void {
    this.wanted.get(item.scope)?.forEach((listener) => listener(item));
  }

  private tellStatus(state: LiveStatus["state"]): void {
    if (this.status.state === state) return;
    const status = { state, since: Date.now() };
    this.channel?.postMessage({ type: "status", status } satisfies Message);
    this.setStatus(status);
  }

  private setStatus(status: LiveStatus): void {
    this.status = status;
    this.statusListeners.forEach((listener) => listener());
  }
}
