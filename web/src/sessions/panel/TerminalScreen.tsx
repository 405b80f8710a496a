// A shell in the session's sandbox. Loaded when it is looked at: xterm is large.
import "@xterm/xterm/css/xterm.css";
import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal } from "@xterm/xterm";
import { useEffect, useRef, useState } from "react";
import { useIsDark } from "../../shell/theme";
import { useText } from "../../text";
import { Button } from "../../ui/basics";
import { stylesAsProperties, withNonce } from "./stylePolicy";
import { TerminalSocket, type TerminalState, terminalUrl } from "./terminalSocket";

const LEAVE = "F6";
const CALM_MS = 80;

function colours(): ITheme {
  const of = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  return {
    background: of("panel"), foreground: of("text"), cursor: of("text"), cursorAccent: of("panel"), selectionBackground: of("accent-soft"),
    black: of("text"), brightBlack: of("muted"), white: of("muted"), brightWhite: of("text"), red: of("refused"), brightRed: of("refused"), green: of("written"), brightGreen: of("written"),
    yellow: of("waiting"), brightYellow: of("waiting"), blue: of("accent"), brightBlue: of("accent"), magenta: of("merged"), brightMagenta: of("merged"), cyan: of("accent"), brightCyan: of("accent"),
    scrollbarSliderBackground: of("line-strong"), scrollbarSliderHoverBackground: of("muted"), scrollbarSliderActiveBackground: of("muted"),
  };
}

export default function TerminalScreen({ session, onOver }: { session: string; onOver: () => void }) {
  const t = useText().sessions.terminal;
  const isDark = useIsDark();
  const box = useRef<HTMLDivElement>(null);
  const terminal = useRef<Terminal | undefined>(undefined);
  const socket = useRef<TerminalSocket | undefined>(undefined);
  const [state, setState] = useState<TerminalState>({ is: "connecting" });
  const over = useRef(onOver);
  useEffect(() => {
    over.current = onOver;
  });

  useEffect(() => {
    const host = box.current;
    if (!host) return;
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
    const restore = stylesAsProperties();
    const screen = new Terminal({
      theme: colours(), fontFamily: '"JetBrains Mono Variable", ui-monospace, "Noto Sans Mono CJK SC", "Noto Sans CJK SC", monospace', fontSize: 12.5, lineHeight: 1.3,
      cursorBlink: !window.matchMedia("(prefers-reduced-motion: reduce)").matches, minimumContrastRatio: 4.5, scrollback: 5000, allowProposedApi: true,
    });
    const fit = new FitAddon();
    screen.loadAddon(fit);
    withNonce(nonce, () => screen.open(host));
    screen.textarea?.setAttribute("aria-label", t.label);
    fit.fit();
    screen.attachCustomKeyEventHandler((event) => {
      if (event.key !== LEAVE) return true;
      event.preventDefault(); // the way out for who has no mouse
      if (event.type === "keydown") document.querySelector<HTMLElement>('[role="tab"][data-state="active"]')?.focus();
      return false;
    });
    const link = new TerminalSocket(terminalUrl(session), {
      size: () => ({ rows: screen.rows, columns: screen.cols }),
      show: (data, shown) => screen.write(data, shown),
      clear: () => screen.reset(),
      onState: (now) => {
        setState(now);
        if (now.is === "ended" || now.is === "lost") over.current();
      },
    });
    const listeners = [
      screen.onData((data) => link.type(data)),
      screen.onBinary((data) => link.type(Uint8Array.from(data, (letter) => letter.charCodeAt(0)))),
      screen.onResize(({ rows, cols }) => link.resize({ rows, columns: cols })),
    ];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const watch = new ResizeObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(() => fit.fit(), CALM_MS);
    });
    watch.observe(host);
    terminal.current = screen;
    socket.current = link;
    return () => {
      watch.disconnect();
      clearTimeout(timer);
      listeners.forEach((one) => one.dispose());
      link.close();
      screen.dispose();
      restore();
    };
  }, [session, t.label]);

  useEffect(() => {
    if (terminal.current) terminal.current.options.theme = colours();
  }, [isDark]);

  return (
    <div className="flex min-h-0 flex-1 flex-col bg-panel" data-own-keys>
      <div ref={box} data-testid="terminal" data-state={state.is} className="min-h-0 flex-1 overflow-hidden px-3 py-2" onClick={() => terminal.current?.focus()} />
      <div className="flex min-h-9 shrink-0 flex-wrap items-center gap-2 border-t px-3 py-1 text-xs text-muted" role="status">
        <span className="min-w-0 flex-1 break-words">{state.is === "ended" ? (state.why || t.ended) : state.is === "lost" ? t.lost : state.is === "connecting" ? t.connecting : t.hint(LEAVE)}</span>
        {(state.is === "ended" || state.is === "lost") && <Button small onClick={() => socket.current?.connect()}>{state.is === "ended" ? t.again : t.reconnect}</Button>}
      </div>
    </div>
  );
}
