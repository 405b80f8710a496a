// One session: the conversation in the middle, what it does and did beside it.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLiveProjects } from "../live/hooks";
import { useText } from "../text";
import { Button, classes, Problem, Skeleton } from "../ui/basics";
import { shortName } from "../ui/format";
import { Sheet } from "../ui/sheet";
import { Composer } from "./Composer";
import { takeFirstMessage } from "./firstMessage";
import { type ThreadActions, ThreadContext } from "./Message";
import { type ChatMessage, isPending, projectPath, questionsOf, shownFiles, textOf, totalsOf } from "./parts";
import type { PanelTab } from "./panel/tabs";
import { keepWishes, keptWishes, providerName } from "./profiles";
import { conversationQuery, type MessagePage, type OpenedSession, projectNamesQuery, sessionQuery } from "./queries";
import { QueuedMessages } from "./QueuedMessages";
import { useForking } from "./rewinding";
import { SessionHeader } from "./SessionHeader";
import { Thread } from "./Thread";
import { useSessionChat } from "./useSessionChat";
import { folderName, uploadToFolder } from "./panel/folder";

const Panel = lazy(() => import("./panel/Panel").then((module) => ({ default: module.Panel })));
const route = getRouteApi("/sessions/$session");

export function SessionPage() {
  const { session: id } = route.useParams();
  const session = useQuery(sessionQuery(id));
  const first = useQuery(conversationQuery(id));
  const error = session.error ?? first.error;
  if (error && (!session.data || !first.data)) return <Problem error={error} retry={() => { void session.refetch(); void first.refetch(); }} />;
  if (!session.data || !first.data) return <Skeleton lines={8} className="mx-auto w-full max-w-[752px] pt-16" />;
  return <Conversation key={id} session={session.data} initial={first.data} />;
}

function Conversation({ session, initial }: { session: OpenedSession; initial: MessagePage }) {
  const t = useText();
  const navigate = useNavigate();
  const search = route.useSearch();
  const project = useQuery(projectNamesQuery()).data?.get(session.project_id);
  useLiveProjects(project ? [project] : []);
  const [wishes, setWishes] = useState(() => keptWishes(session.id));
  const chat = useSessionChat(session.id, initial, wishes);
  const [sheet, setSheet] = useState(false);
  const { dialog, ...forking } = useForking(session.id, chat.sync);

  const current = session.open_runs[0];
  const queued = session.open_runs.slice(1);
  const isWorking = chat.isStreaming || session.open_runs.length > 0;
  const hidden = useMemo(() => new Set(queued.map((run) => run.id)), [queued]);
  const messages = useMemo(() => (hidden.size ? chat.messages.filter((message) => !hidden.has(message.metadata?.run_id ?? message.id)) : chat.messages), [chat.messages, hidden]);
  const questions = useMemo(() => questionsOf(messages), [messages]);
  const totals = useMemo(() => totalsOf(messages), [messages]);

  useEffect(() => {
    const text = takeFirstMessage(session.id);
    if (text !== undefined) void chat.send(text);
  }, [session.id]);

  const show = useCallback(
    (changes: { panel?: PanelTab; file?: string }) => {
      void navigate({ to: "/sessions/$session", params: { session: session.id }, search: (before) => ({ ...before, ...changes }), replace: true });
      if (!window.matchMedia("(min-width: 1280px)").matches) setSheet(true);
    },
    [navigate, session.id],
  );
  const isOwn = session.access === "own";
  // What the agent shows is opened once, unless the reader is at work in the panel.
  const aside = useRef<HTMLElement>(null);
  const shown = useMemo(() => shownFiles(messages), [messages]);
  const seen = useRef(shown?.call);
  useEffect(() => {
    if (!shown || shown.call === seen.current) return;
    seen.current = shown.call;
    if (!isOwn || aside.current?.contains(document.activeElement)) return;
    const changes = shown.paths.length === 1 ? { panel: "preview" as const, file: shown.paths[0] } : { panel: "files" as const, file: undefined };
    void navigate({ to: "/sessions/$session", params: { session: session.id }, search: (before) => ({ ...before, ...changes }), replace: true });
  }, [shown, isOwn, navigate, session.id]);
  const openFile = useCallback(
    (path: string) => {
      // The session's folder is its owner's alone; what landed of a file is in the project.
      if (isOwn) show({ panel: "preview", file: projectPath(path) });
      else if (project) void navigate({ to: "/projects/$project/files/$", params: { project, _splat: projectPath(path) } });
    },
    [show, isOwn, project, navigate],
  );
  const lastPrompt = chat.messages.findLast((message) => message.role === "user");
  const actions = useMemo<ThreadActions>(
    () => ({
      project: project ?? "",
      session: session.id,
      openFile,
      ...(session.state === "closed" ? {} : { rewind: isWorking || !isOwn ? undefined : forking.rewind, retry: isWorking || session.access === "read" || !lastPrompt ? undefined : () => void chat.send(textOf(lastPrompt)) }),
      fork: isOwn ? forking.fork : undefined,
    }),
    [isOwn, session.access, project, session.id, session.state, openFile, isWorking, forking.rewind, forking.fork, lastPrompt],
  );
  const panel = (
    <Suspense fallback={<Skeleton lines={6} />}>
      <Panel session={session} project={project} messages={messages} questions={questions} totals={totals} tab={search.panel ?? "changes"} file={search.file} onShow={(changes) => void navigate({ to: "/sessions/$session", params: { session: session.id }, search: { ...search, ...changes }, replace: true })} onSettled={chat.sync} />
    </Suspense>
  );
  return (
    <ThreadContext value={actions}>
      <SessionHeader session={session} project={project} run={current} totals={totals} questions={questions.filter(isPending).length} wishes={wishes} onWishes={(next) => { keepWishes(session.id, next); setWishes(next); }} onPanel={() => setSheet(true)} />
      {session.worker?.alert && <p role="alert" className="shrink-0 border-b bg-refused-soft px-4 py-2 text-sm break-words text-refused">{session.worker.alert}</p>}
      <div className="flex min-h-0 flex-1">
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <Thread messages={messages} liveId={current?.id} showId={search.message} isStreaming={chat.isStreaming} hasOlder={chat.hasOlder} loadOlder={chat.loadOlder}>
            <Ending chat={chat} messages={messages} />
          </Thread>
          <Composer
            name={session.id}
            project={project}
            folder={session.worker && isOwn ? folderName(session) : undefined}
            agent={providerName(wishes.provider ?? session.provider)}
            isWorking={isWorking}
            isStopping={chat.isStopping}
            disabled={session.state === "closed" ? t.sessions.closedHint : session.access === "read" ? t.sessions.share.readHint(shortName(session.owner)) : undefined}
            autoFocus={window.matchMedia("(min-width: 768px)").matches}
            onSend={chat.send}
            onStop={() => void chat.stop()}
            attach={session.worker && isOwn ? (files) => uploadToFolder(session, files) : undefined}
          >
            <QueuedMessages session={session.id} runs={queued} />
          </Composer>
        </div>
        <aside ref={aside} aria-label={t.sessions.panel} className="hidden w-[400px] shrink-0 flex-col border-l xl:flex">{panel}</aside>
      </div>
      <Sheet title={t.sessions.panel} side="right" open={sheet} onClose={() => setSheet(false)}>{panel}</Sheet>
      {dialog}
    </ThreadContext>
  );
}

/** What stands below the last message: that it is waited for, or what went wrong. */
function Ending({ chat, messages }: { chat: ReturnType<typeof useSessionChat>; messages: ChatMessage[] }) {
  const t = useText();
  const isFirst = messages.length === 0;
  const waits = chat.status === "submitted";
  return (
    <>
      {waits && <p className={classes("flex items-center gap-2 text-sm text-muted")}><span className="size-1.5 animate-pulse rounded-full bg-merged" aria-hidden />{t.sessions.stateHints.preparing}</p>}
      {isFirst && !waits && !chat.error && <p className="text-muted">{t.sessions.thread.empty}</p>}
      {chat.isLost && <p role="status" className="text-sm text-waiting">{t.sessions.thread.interrupted}</p>}
      {chat.error && (
        <div role="alert" className="flex flex-wrap items-center gap-3 text-sm text-refused">
          <span className="min-w-0 break-words">{t.sessions.composer.failed}: {chat.error.message}</span>
          <Button small onClick={() => { chat.clearError(); void chat.sync(); }}>{t.common.retry}</Button>
        </div>
      )}
      <p role="status" className="sr-only">{!chat.isStreaming && messages.at(-1)?.role === "assistant" ? t.sessions.thread.done : ""}</p>
    </>
  );
}
