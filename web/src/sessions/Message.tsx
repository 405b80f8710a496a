// One message of a conversation, with every kind of part that it can have.
import { ChevronDown, ChevronRight, Copy, FileText, GitFork, History, Info, Paperclip } from "lucide-react";
import { createContext, memo, type ReactNode, useContext, useMemo, useState } from "react";
import { useText } from "../text";
import { classes, IconButton } from "../ui/basics";
import { baseName, formatMoment } from "../ui/format";
import { tell, tellError } from "../ui/toasts";
import { LandingCard } from "./LandingCard";
import { Markdown } from "./Markdown";
import { safeUrl } from "./markdownText";
import { type ChatMessage, type ChatPart, type DataParts, projectPath, textOf, type ToolPart, wholeLanding } from "./parts";
import { QuestionCard } from "./QuestionCard";
import { formatCost, formatCount, formatDuration, hasEnded } from "./states";
import { Output, ToolCard, toolPath } from "./ToolCard";

export type ThreadActions = {
  project: string;
  session: string;
  openFile: (path: string) => void;
  rewind?: (message: ChatMessage) => void;
  fork?: (message: ChatMessage) => void;
  retry?: () => void;
};
export const ThreadContext = createContext<ThreadActions>({ project: "", session: "", openFile: () => {} });

type Props = { message: ChatMessage; isStreaming: boolean; isLast: boolean };

export const Message = memo(function Message({ message, isStreaming, isLast }: Props) {
  return message.role === "user" ? <Said message={message} /> : <Answered message={message} isStreaming={isStreaming} isLast={isLast} />;
});

function Said({ message }: { message: ChatMessage }) {
  const t = useText().sessions.thread;
  const files = message.parts.filter((part) => part.type === "file");
  return (
    <article aria-label={t.you} className="group flex flex-col items-end">
      <div className="max-w-[85%] rounded-xl bg-sunken px-3.5 py-2.5 break-words whitespace-pre-wrap">{textOf(message)}</div>
      {files.length > 0 && <div className="mt-1 flex flex-wrap justify-end gap-1">{files.map((part, index) => <FilePart key={index} url={part.url} mediaType={part.mediaType} name={part.filename} />)}</div>}
      <Foot message={message} isMine />
    </article>
  );
}

function Answered({ message, isStreaming, isLast }: Props) {
  const t = useText().sessions.thread;
  const outcomes = useMemo(() => {
    const landing = message.parts.findLast((part) => part.type === "data-landing");
    return new Map((landing?.data.paths ?? []).map((one) => [one.path, one.status as string]));
  }, [message]);
  let step = 0;
  return (
    <article aria-label={t.agent} aria-busy={isStreaming} className="group flex flex-col gap-3">
      {message.parts.map((part, index) => {
        if (part.type === "step-start") step += 1;
        return <Part key={partKey(part, index)} part={part} step={step} outcomes={outcomes} isLive={isStreaming && index === message.parts.length - 1} isLast={isLast} runId={message.id} />;
      })}
      {!isStreaming && <Foot message={message} />}
    </article>
  );
}

function partKey(part: ChatPart, index: number): string {
  if (part.type === "dynamic-tool") return part.toolCallId;
  return "id" in part && part.id ? `${part.type}:${part.id}` : `${part.type}:${index}`;
}

type PartProps = { part: ChatPart; step: number; outcomes: Map<string, string>; isLive: boolean; isLast: boolean; runId: string };

function Part({ part, step, outcomes, isLive, isLast, runId }: PartProps): ReactNode {
  const t = useText().sessions;
  const { project, session, openFile } = useContext(ThreadContext);
  switch (part.type) {
    case "text":
      return part.text ? <Markdown text={part.text} /> : null;
    case "reasoning":
      return part.text ? <Reasoning text={part.text} isLive={part.state === "streaming" && isLive} /> : null;
    case "step-start":
      return step > 1 ? <div className="flex items-center gap-3 text-xs text-muted" role="separator"><span className="h-px flex-1 bg-line" />{t.thread.step(step)}<span className="h-px flex-1 bg-line" /></div> : null;
    case "source-url":
      return <Source url={part.url} title={part.title} />;
    case "source-document":
      return <p className="flex items-center gap-2 text-sm text-muted"><FileText size={14} aria-hidden />{part.title}{part.filename && <span className="mono">{part.filename}</span>}</p>;
    case "file":
      return <FilePart url={part.url} mediaType={part.mediaType} name={part.filename} />;
    case "dynamic-tool":
      return <ToolCard part={part as ToolPart} outcome={toolOutcome(part as ToolPart, outcomes)} onOpenFile={openFile} />;
    case "steering-message":
      return <Steered text={part.parts.flatMap((one) => (one.type === "text" ? [one.text] : [])).join("\n\n")} />;
    case "data-question":
      return <QuestionCard question={{ run_id: runId, ...part.data }} withKeys={isLast} />;
    case "data-landing":
      return <LandingCard landing={wholeLanding(part.data)} project={project} session={session} isLatest={isLast} onOpenFile={openFile} />;
    case "data-run":
      return <RunLine run={part.data} />;
    case "data-todos":
      return <TodoLine todos={part.data.todos} />;
    case "data-files":
      return <Shown paths={part.data.paths} />;
    case "data-rate-limited":
      return isLive ? <Note tone="text-waiting">{t.thread.rateLimited(part.data.retry_after)}</Note> : null;
    case "data-note":
      return <Note>{part.data.text}</Note>;
    default:
      return part.type.startsWith("data-") ? <Output label={t.thread.data} text={JSON.stringify((part as { data?: unknown }).data, null, 2)} /> : null;
  }
}

/** What the reader said to the agent while it worked. */
function Steered({ text }: { text: string }) {
  const t = useText().sessions;
  return (
    <div className="flex flex-col items-end">
      <div className="max-w-[85%] rounded-xl border border-merged/40 bg-merged-soft px-3.5 py-2.5 break-words whitespace-pre-wrap">{text}</div>
      <span className="mt-0.5 text-xs text-merged">{t.thread.steered}</span>
    </div>
  );
}

function toolOutcome(part: ToolPart, outcomes: Map<string, string>): string | undefined {
  if (part.toolName !== "edit" && part.toolName !== "write") return undefined;
  const path = toolPath(part);
  return path === undefined ? undefined : outcomes.get(path);
}

/** Open while it streams, one line after. */
function Reasoning({ text, isLive }: { text: string; isLive: boolean }) {
  const t = useText().sessions.thread;
  const [choice, setOpen] = useState<boolean | null>(null);
  const isOpen = choice ?? isLive;
  return (
    <div className="text-sm text-muted" data-testid="reasoning">
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className="flex max-w-full items-center gap-1.5 hover:text-text">
        {isOpen ? <ChevronDown size={14} className="shrink-0" aria-hidden /> : <ChevronRight size={14} className="shrink-0" aria-hidden />}
        <span className="truncate">{isLive ? t.thinking : t.thought}</span>
      </button>
      {isOpen && <div className="mt-1 border-l-2 border-line-strong pl-3"><Markdown text={text} /></div>}
    </div>
  );
}

function Source({ url, title }: { url: string; title?: string }) {
  const safe = safeUrl(url);
  const host = safe.startsWith("http") ? new URL(safe).host : "";
  if (!safe) return <Note>{title ?? url}</Note>;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow" className="flex w-fit max-w-full items-center gap-2 rounded-md border px-2.5 py-1 text-sm hover:bg-hover">
      <span className="truncate">{title || safe}</span><span className="shrink-0 text-muted">{host}</span>
    </a>
  );
}

/** Pictures only from the message itself or from this server. */
function FilePart({ url, mediaType, name }: { url: string; mediaType: string; name?: string }) {
  const isOurs = /^data:image\/(png|jpeg|gif|webp);/.test(url) || url.startsWith("/api/v1/");
  if (mediaType.startsWith("image/") && mediaType !== "image/svg+xml" && isOurs) return <img src={url} alt={name ?? ""} className="max-h-80 max-w-full rounded-lg border" />;
  return <span className="inline-flex max-w-full items-center gap-2 rounded-md border bg-panel px-2.5 py-1 text-sm"><Paperclip size={14} aria-hidden className="shrink-0 text-muted" /><span className="truncate">{name ?? mediaType}</span></span>;
}

function Note({ children, tone }: { children: ReactNode; tone?: string }) {
  return <p className={classes("flex items-start gap-2 text-sm", tone ?? "text-muted")}><Info size={14} aria-hidden className="mt-0.5 shrink-0" /><span className="min-w-0 break-words">{children}</span></p>;
}

function RunLine({ run }: { run: DataParts["run"] }) {
  const t = useText().sessions;
  const { retry } = useContext(ThreadContext);
  if (run.state === "failed")
    return (
      <div role="alert" className="rounded-lg border border-refused/40 bg-refused-soft px-3 py-2 text-sm">
        <p className="font-medium text-refused">{t.thread.failed}{run.reason && <span className="mono ml-2 text-xs">{run.reason}</span>}</p>
        {run.message && <p className="mt-0.5 break-words">{run.message}</p>}
        {retry && <button type="button" className="link mt-1" onClick={retry}>{t.thread.retry}</button>}
      </div>
    );
  if (run.state === "canceled") return <Note>{t.thread.canceled}</Note>;
  if (hasEnded(run.state) || run.state === "running") return null;
  const state = run.state === "waiting_human" ? "waiting" : run.state;
  return <p className="flex items-center gap-2 text-sm text-muted"><span className="size-1.5 animate-pulse rounded-full bg-merged" aria-hidden />{run.state === "queued" ? t.thread.queuedRun : (t.stateHints[state] ?? t.states[state] ?? run.state)}</p>;
}

function TodoLine({ todos }: { todos: DataParts["todos"]["todos"] }) {
  const t = useText().sessions.todo;
  const [isOpen, setOpen] = useState(false);
  const done = todos.filter((todo) => todo.status === "done").length;
  const doing = todos.find((todo) => todo.status === "doing");
  return (
    <div className="text-sm text-muted">
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className="flex max-w-full items-center gap-1.5 hover:text-text">
        {isOpen ? <ChevronDown size={14} className="shrink-0" aria-hidden /> : <ChevronRight size={14} className="shrink-0" aria-hidden />}
        <span className="truncate">{t.progress(done, todos.length)}{doing && ` · ${doing.content}`}</span>
      </button>
      {isOpen && <ul className="mt-1 border-l-2 border-line-strong pl-3">{todos.map((todo) => <li key={todo.todo_id} className={classes(todo.status === "canceled" && "line-through")}>{todo.status === "done" ? "✓" : todo.status === "doing" ? "→" : "·"} {todo.content}</li>)}</ul>}
    </div>
  );
}

function Shown({ paths }: { paths: string[] }) {
  const t = useText().sessions.thread;
  const { openFile } = useContext(ThreadContext);
  return (
    <p className="flex flex-wrap items-center gap-2 text-sm text-muted">
      {t.shows}
      {paths.slice(0, 20).map((path) => <button key={path} type="button" title={path} className="mono max-w-60 truncate rounded border px-1.5 hover:bg-hover" onClick={() => openFile(projectPath(path))}>{baseName(path)}</button>)}
    </p>
  );
}

function Foot({ message, isMine }: { message: ChatMessage; isMine?: boolean }) {
  const t = useText().sessions.thread;
  const { rewind, fork } = useContext(ThreadContext);
  const { metadata: data } = message;
  const input = (data?.usage?.input_tokens ?? 0) + (data?.usage?.cache_read_tokens ?? 0) + (data?.usage?.cache_write_tokens ?? 0);
  const tokens = input + (data?.usage?.output_tokens ?? 0);
  const facts = isMine ? [] : [data?.model, tokens > 0 && t.tokens(formatCount(tokens)), Number(data?.cost) > 0 && formatCost(Number(data?.cost)), data?.duration_ms != null && data.duration_ms > 0 && formatDuration(data.duration_ms)].filter(Boolean);
  const copy = () => void navigator.clipboard.writeText(textOf(message)).then(() => tell(t.copied), tellError);
  return (
    <footer className={classes("flex min-h-6 items-center gap-1 text-xs text-muted tabular", isMine && "justify-end")}>
      {facts.length > 0 && <span className="mr-1 truncate" title={data?.created_at ? formatMoment(data.created_at) : undefined}>{facts.join(" · ")}</span>}
      <span className="flex opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 [@media(hover:none)]:opacity-100">
        <IconButton label={t.copy} className="size-6" onClick={copy}><Copy size={13} strokeWidth={1.5} /></IconButton>
        {rewind && isMine && <IconButton label={t.rewind} className="size-6" onClick={() => rewind(message)}><History size={13} strokeWidth={1.5} /></IconButton>}
        {fork && <IconButton label={t.fork} className="size-6" onClick={() => fork(message)}><GitFork size={13} strokeWidth={1.5} /></IconButton>}
      </span>
    </footer>
  );
}
