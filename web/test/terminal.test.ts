import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { stylesAsProperties, withNonce } from "../src/sessions/panel/stylePolicy";
import { TerminalSocket, type TerminalState, terminalUrl } from "../src/sessions/panel/terminalSocket";

class FakeSocket {
  static readonly OPEN = 1;
  static made: FakeSocket[] = [];
  readyState = 1;
  sent: (string | Uint8Array)[] = [];
  onmessage?: (event: { data: string | ArrayBuffer }) => void;
  onclose?: (event: { code: number; reason: string }) => void;
  constructor(readonly url: string) {
    FakeSocket.made.push(this);
  }
  send(data: string | Uint8Array) {
    this.sent.push(data);
  }
  close() {
    this.readyState = 3;
  }
  tells(item: object) {
    this.onmessage?.({ data: JSON.stringify(item) });
  }
  shows(text: string) {
    this.onmessage?.({ data: new TextEncoder().encode(text).buffer as ArrayBuffer });
  }
}

describe("a terminal's connection", () => {
  let states: TerminalState[];
  let drawn: (() => void)[];
  let terminal: TerminalSocket;
  const socket = () => FakeSocket.made.at(-1)!;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", FakeSocket);
    FakeSocket.made = [];
    [states, drawn] = [[], []];
    terminal = new TerminalSocket("ws://here/terminal", { size: () => ({ rows: 30, columns: 90 }), show: (_, shown) => drawn.push(shown), clear: () => drawn.splice(0), onState: (state) => states.push(state) });
  });
  afterEach(() => {
    terminal.close();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it("asks for the size of the screen, and says when it is resized", () => {
    expect(socket().url).toBe("ws://here/terminal?rows=30&columns=90");
    terminal.resize({ rows: 10, columns: 20 });
    expect(socket().sent).toEqual(['{"resize":{"rows":10,"columns":20}}']);
  });

  it("types nothing while old output is drawn: the screen would answer questions of long ago", () => {
    socket().tells({ type: "attached", replayed: 5 });
    socket().shows("12345");
    terminal.type("an answer");
    expect(socket().sent).toEqual([]);
    drawn[0]?.();
    terminal.type("ls");
    expect(socket().sent).toEqual([new TextEncoder().encode("ls")]);
  });

  it("connects again by itself when it is cut off, and not when the shell ended or was refused", () => {
    socket().tells({ type: "attached", replayed: 0 });
    socket().onclose?.({ code: 1006, reason: "" });
    expect(states.at(-1)).toEqual({ is: "lost" });
    vi.advanceTimersByTime(20_000);
    expect(FakeSocket.made).toHaveLength(2);
    socket().onclose?.({ code: 1008, reason: "You may not." });
    expect(states.at(-1)).toEqual({ is: "ended", why: "You may not." });
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.made).toHaveLength(2);
  });

  it("is asked for where the page is from", () => {
    expect(terminalUrl("s1", { protocol: "https:", host: "a.example" })).toBe("wss://a.example/api/v1/sessions/s1/terminal");
    expect(terminalUrl("s1", { protocol: "http:", host: "a:1" })).toBe("ws://a:1/api/v1/sessions/s1/terminal");
  });
});

describe("styles under the page's policy", () => {
  it("are sheets with the nonce, and the document is as it was afterwards", () => {
    const before = document.createElement;
    expect(withNonce("n1", () => document.createElement("style").nonce)).toBe("n1");
    expect(() => withNonce("n1", () => { throw new Error("no"); })).toThrow("no");
    expect(document.createElement).toBe(before);
  });

  it("are properties of spans, and no attributes", () => {
    const restore = stylesAsProperties();
    const span = document.createElement("span");
    span.setAttribute("style", "color: red;");
    span.setAttribute("title", "x");
    expect([span.style.color, span.title]).toEqual(["red", "x"]);
    restore();
    expect(Object.hasOwn(HTMLSpanElement.prototype, "setAttribute")).toBe(false);
  });
});
