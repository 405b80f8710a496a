// A terminal's connection: what the shell shows, what is typed, and how it ends. The shell itself stays with the server,
// which shows the last of its output again to whoever connects.

export type TerminalState =
  | { is: "connecting" | "open" | "lost" }
  | { is: "ended"; why: string }; // "": the shell ended by itself

export type Size = { rows: number; columns: number };

type Hooks = {
  size: () => Size;
  /** Calls back when it is on the screen. */
  show: (data: Uint8Array, shown: () => void) => void;
  /** Before what was shown earlier is shown again. */
  clear: () => void;
  onState: (state: TerminalState) => void;
};

const NORMAL = 1000;
const REFUSED = 1008;
const LONGEST_PAUSE_MS = 10_000;

export class TerminalSocket {
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #replaying = 0; // bytes that were shown before and are still to be drawn
  #isClosed = false;

  constructor(
    private readonly url: string,
    private readonly hooks: Hooks,
  ) {
    this.connect();
  }

  /** Whether what the screen sends is somebody's typing: while old output is drawn, it answers questions of long ago. */
  get takesInput(): boolean {
    return this.#replaying === 0 && this.#socket?.readyState === WebSocket.OPEN;
  }

  connect(): void {
    clearTimeout(this.#timer);
    this.#replaying = 0;
    this.hooks.onState({ is: "connecting" });
    const { rows, columns } = this.hooks.size();
    const socket = new WebSocket(`${this.url}?${new URLSearchParams({ rows: String(rows), columns: String(columns) })}`);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data === "string") this.#attached(data);
      else this.#show(new Uint8Array(data));
    };
    socket.onclose = ({ code, reason }) => this.#over(code, reason);
    this.#socket = socket;
  }

  type(data: string | Uint8Array): void {
    if (this.takesInput) this.#socket?.send(typeof data === "string" ? new TextEncoder().encode(data) : data);
  }

  resize(size: Size): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ resize: size }));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  #attached(message: string): void {
    const item = JSON.parse(message) as { type?: string; replayed?: number };
    if (item.type !== "attached") return;
    this.#failures = 0;
    this.#replaying = item.replayed ?? 0;
    this.hooks.clear();
    this.hooks.onState({ is: "open" });
  }

  #show(data: Uint8Array): void {
    this.hooks.show(data, () => (this.#replaying = Math.max(0, this.#replaying - data.length)));
  }

  #over(code: number, reason: string): void {
    if (this.#isClosed) return;
    if (code === NORMAL || code === REFUSED) {
      this.hooks.onState({ is: "ended", why: reason });
      return;
    }
    this.#failures += 1;
    this.hooks.onState({ is: "lost" });
    this.#timer = setTimeout(() => this.connect(), Math.min(LONGEST_PAUSE_MS, 500 * 2 ** this.#failures));
  }
}

/** The address of a session's terminal, from the page's own. */
export const terminalUrl = (session: string, page: { protocol: string; host: string } = window.location) =>
  `${page.protocol === "https:" ? "wss" : "ws"}://${page.host}/api/v1/sessions/${session}/terminal`;
