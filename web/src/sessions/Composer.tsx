// Where messages are written. While the agent works, three acts are kept apart: queue, steer, interrupt.
import { useQuery } from "@tanstack/react-query";
import { ArrowUp, Paperclip, Square } from "lucide-react";
import { type ChangeEvent, type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useLayoutEffect, useRef, useState } from "react";
import { api, body } from "../api/client";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Button, classes } from "../ui/basics";
import { tellError } from "../ui/toasts";
import { mentionAt } from "./mentions";
import type { Mode } from "./useSessionChat";

const MODES: Mode[] = ["queue", "steer", "interrupt"];
const kept = (name: string) => `draft:${name}`;

type Props = {
  name: string; // of the draft that is kept until it is sent
  project: string | undefined;
  folder?: string; // the session's own, where it works in no project
  agent: string;
  isWorking: boolean;
  isStopping?: boolean;
  disabled?: string;
  autoFocus?: boolean;
  isInline?: boolean; // in the text, not at the end of a page
  onSend: (text: string, mode: Mode) => Promise<void>;
  onStop?: () => void;
  attach?: (files: File[]) => Promise<string[]>;
  children?: ReactNode;
};

export function Composer({ name, project, folder, agent, isWorking, isStopping, disabled, autoFocus, isInline, onSend, onStop, attach, children }: Props) {
  const t = useText().sessions.composer;
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(() => sessionStorage.getItem(kept(name)) ?? "");
  const [mode, setMode] = useState<Mode>("queue");
  const [isSending, setSending] = useState(false);
  const [isAttaching, setAttaching] = useState(false);
  const [caret, setCaret] = useState(0);
  const [active, setActive] = useState(0);
  const [dismissed, setDismissed] = useState<string | null>(null);

  useEffect(() => {
    if (text) sessionStorage.setItem(kept(name), text);
    else sessionStorage.removeItem(kept(name));
  }, [name, text]);
  useEffect(() => onDraft(name, (more) => { setText((now) => (now ? `${now.replace(/\s*$/, "")}\n\n${more}` : more)); box.current?.focus(); }), [name]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    element.style.height = "0";
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight * 0.4)}px`;
  }, [text]);

  const mention = mentionAt(text, caret);
  const asked = useDeferredValue(mention?.name ?? "");
  const found = useQuery({
    queryKey: ["project", project ?? folder, "names", asked],
    enabled: !!(project ?? folder) && !!mention,
    queryFn: ({ signal }) => !project && folder ? body(api.GET("/api/v1/workspaces/{workspace}/search/names", { params: { path: { workspace: folder }, query: { name: asked || undefined, limit: 8 } }, signal })) : body(api.GET("/api/v1/search/names", { params: { query: { project: project ?? "", name: asked || undefined, limit: 8 } }, signal })),
  });
  const files = mention && mention.name !== dismissed ? (found.data?.paths ?? []) : [];
  const at = Math.min(active, files.length - 1);

  function insert(path: string) {
    if (!mention) return;
    const next = `${text.slice(0, mention.start)}@${path} ${text.slice(caret)}`;
    const place = mention.start + path.length + 2;
    setText(next);
    requestAnimationFrame(() => {
      box.current?.focus();
      box.current?.setSelectionRange(place, place);
      setCaret(place);
    });
  }

  async function send(asMode: Mode = mode) {
    const message = text.trim();
    if (!message || isSending || disabled) return;
    setSending(true);
    setText("");
    try {
      await onSend(message, asMode);
    } catch (error) {
      setText(message);
      tellError(error);
    } finally {
      setSending(false);
      box.current?.focus();
    }
  }

  function onKeyDown(event: KeyboardEvent<HTMLTextAreaElement>) {
    if (event.nativeEvent.isComposing) return;
    if (files.length > 0) {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        setActive((at + (event.key === "ArrowDown" ? 1 : files.length - 1)) % files.length);
        return event.preventDefault();
      }
      if (event.key === "Enter" || event.key === "Tab") {
        insert(files[at] ?? "");
        return event.preventDefault();
      }
      if (event.key === "Escape") {
        setDismissed(mention?.name ?? "");
        event.stopPropagation();
        return event.preventDefault();
      }
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      void send();
    }
  }

  async function onFiles(event: ChangeEvent<HTMLInputElement>) {
    const chosen = [...(event.target.files ?? [])];
    event.target.value = "";
    await put(chosen);
  }

  async function put(chosen: File[]) {
    if (!attach || chosen.length === 0) return;
    setAttaching(true);
    try {
      const paths = await attach(chosen);
      setText((now) => `${now}${now && !/\s$/.test(now) ? " " : ""}${paths.map((path) => `@${path}`).join(" ")} `);
      box.current?.focus();
    } catch (error) {
      tellError(error);
    } finally {
      setAttaching(false);
    }
  }

  useShortcut("Escape", t.stop, () => onStop?.(), isWorking && !!onStop && !isStopping);
  useShortcut("c", t.label, () => box.current?.focus(), !disabled);

  if (disabled) return <p className="border-t px-4 py-3 text-center text-sm text-muted">{disabled}</p>;
  return (
    <div className={isInline ? "" : "mx-auto w-full max-w-[752px] shrink-0 px-2 pb-3 sm:px-4"}>
      {children}
      <div
        className="relative rounded-xl border border-line-strong bg-panel focus-within:border-accent"
        onDragOver={(event) => attach && event.dataTransfer.types.includes("Files") && event.preventDefault()}
        onDrop={(event) => { if (!attach || !event.dataTransfer.files.length) return; event.preventDefault(); event.stopPropagation(); void put([...event.dataTransfer.files]); }}
      >
        {files.length > 0 && (
          <ul id="mentions" role="listbox" aria-label={t.files} className="absolute inset-x-0 bottom-full z-20 mb-1 overflow-hidden rounded-lg border bg-panel p-1 shadow-float">
            {files.map((path, index) => (
              <li key={path} id={`mention-${index}`} role="option" aria-selected={index === at} onMouseDown={(event) => { event.preventDefault(); insert(path); }} className={classes("mono truncate rounded-md px-2 py-1", index === at && "bg-hover")}>{path}</li>
            ))}
          </ul>
        )}
        <textarea
          ref={box}
          rows={1}
          autoFocus={autoFocus}
          aria-haspopup="listbox"
          aria-controls={files.length > 0 ? "mentions" : undefined}
          aria-autocomplete="list"
          aria-activedescendant={files.length > 0 ? `mention-${at}` : undefined}
          aria-label={t.label}
          placeholder={t.placeholder(agent)}
          title={t.enter}
          className="block max-h-[40vh] min-h-10 w-full resize-none bg-transparent px-3 pt-2.5 pb-1 focus:outline-none"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setCaret(event.target.selectionStart);
            setActive(0);
            setDismissed(null);
          }}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
          onPaste={(event) => { const pasted = [...event.clipboardData.files]; if (attach && pasted.length) { event.preventDefault(); void put(pasted); } }}
          onKeyDown={onKeyDown}
        />
        <div className="flex flex-wrap items-center gap-2 p-2 pt-1">
          {attach && (
            <>
              <input ref={picker} type="file" multiple hidden onChange={(event) => void onFiles(event)} aria-label={t.attach} />
              <Button small title={t.attachHint} busy={isAttaching} onClick={() => picker.current?.click()}><Paperclip size={13} strokeWidth={1.5} aria-hidden />{isAttaching ? t.attaching : t.attach}</Button>
            </>
          )}
          {isWorking && text.trim() && <ModeChoice mode={mode} onChoose={setMode} />}
          <span className="ml-auto flex items-center gap-2">
            {isWorking && onStop && <span className="hidden text-xs text-muted sm:inline">{t.escStops}</span>}
            {isWorking && onStop && <Button small look={text.trim() ? "plain" : "primary"} disabled={isStopping} onClick={onStop}><Square size={11} fill="currentColor" aria-hidden />{isStopping ? t.stopping : t.stop}</Button>}
            {(!isWorking || text.trim()) && <Button small look="primary" disabled={!text.trim()} busy={isSending} onClick={() => void send()}>{!isSending && <ArrowUp size={13} aria-hidden />}{isWorking ? t.modes[mode] : t.send}</Button>}
          </span>
        </div>
      </div>
    </div>
  );
}

function ModeChoice({ mode, onChoose }: { mode: Mode; onChoose: (mode: Mode) => void }) {
  const t = useText().sessions.composer;
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-2">
      <div role="radiogroup" aria-label={t.mode} className="flex rounded-md border border-line-strong p-px">
        {MODES.map((one) => (
          <button key={one} type="button" role="radio" aria-checked={mode === one} title={t.modeHints[one]} onClick={() => onChoose(one)} className={classes("h-6 rounded-[5px] px-2 text-xs", mode === one ? (one === "interrupt" ? "bg-refused-soft font-medium text-refused" : one === "steer" ? "bg-merged-soft font-medium text-merged" : "bg-hover font-medium") : "text-muted hover:text-text")}>{t.modes[one]}</button>
        ))}
      </div>
      <span className="text-xs text-muted">{t.modeHints[mode]}</span>
    </div>
  );
}

// Other parts of the page put words into the composer: a comment on a line, a prompt card.
const drafts = new Map<string, (more: string) => void>();
function onDraft(name: string, listener: (more: string) => void): () => void {
  drafts.set(name, listener);
  return () => { if (drafts.get(name) === listener) drafts.delete(name); };
}
export function addToDraft(name: string, more: string): void {
  drafts.get(name)?.(more);
}
