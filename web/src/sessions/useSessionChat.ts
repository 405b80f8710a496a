// One session's conversation: what was said, what streams in now, and what the reader sends. The server's account of it
// is the truth; it is read again whenever a run begins or ends, here or in another tab.
import { useChat } from "@ai-sdk/react";
import { useQueryClient } from "@tanstack/react-query";
import { DefaultChatTransport } from "ai";
import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError, problem } from "../api/client";
import { live } from "../live/hooks";
import { tellError } from "../ui/toasts";
import type { ChatMessage } from "./parts";
import type { Wishes } from "./profiles";
import { ask, type MessagePage, type OpenedSession, readMessages, sendMessage, sessionKeys, sessionQuery } from "./queries";

export type Mode = "queue" | "steer" | "interrupt";
const THROTTLE_MS = 60;
const CALM_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

async function checkedFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  const answer = await fetch(...request);
  if (!answer.ok) throw problem(answer, await answer.json().catch(() => null));
  return answer;
}

const transport = new DefaultChatTransport<ChatMessage>({
  api: "/api/v1/chat",
  fetch: checkedFetch,
  prepareSendMessagesRequest: ({ id, messages, body: wishes }) => ({ body: { ...wishes, id, messages: messages.slice(-1) } }),
  prepareReconnectToStreamRequest: ({ id }) => ({ api: `/api/v1/chat/${id}/stream` }),
});

/** Newer pages replace what was known of them; what was read before them stays. */
export function joined(known: ChatMessage[], page: ChatMessage[]): ChatMessage[] {
  const start = page[0] ? known.findIndex((message) => message.id === page[0]?.id) : -1;
  return start > 0 ? [...known.slice(0, start), ...page] : page;
}

export function useSessionChat(session: string, initial: MessagePage, wishes: Wishes) {
  const client = useQueryClient();
  const [older, setOlder] = useState(initial.next_before);
  const [isStopping, setStopping] = useState(false);
  const isLoadingOlder = useRef(false);
  const failures = useRef(0);
  const chat = useChat<ChatMessage>({ id: session, messages: initial.messages, transport, throttle: THROTTLE_MS });
  const { status, setMessages, resumeStream, error, clearError } = chat;
  const isStreaming = status === "submitted" || status === "streaming";
  const busy = useRef(isStreaming);
  useEffect(() => {
    busy.current = isStreaming;
  });

  /** Reads what is there, and joins the run that works, if any. */
  const sync = useCallback(async () => {
    if (busy.current) return;
    try {
      const [page, opened] = await Promise.all([readMessages(session), client.fetchQuery({ ...sessionQuery(session), staleTime: 0 })]);
      if (busy.current) return;
      setMessages((known) => {
        const next = joined(known, page.messages);
        if (next === page.messages) setOlder(page.next_before);
        return next;
      });
      if (opened.open_runs.length > 0) {
        busy.current = true;
        await resumeStream().finally(() => (busy.current = false));
      }
      failures.current = 0;
    } catch (problem) {
      failures.current += 1;
      if (failures.current === 1) tellError(problem);
    }
  }, [session, client, setMessages, resumeStream]);

  // At the start, and when something happens to the session that does not come in through the stream.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void client.invalidateQueries({ queryKey: sessionKeys.one(session) });
        void sync();
      }, CALM_MS);
    };
    const stops = [
      live().subscribe(`session:${session}`, (item) => {
        if (item.type !== "event") return;
        if (item.kind.startsWith("human_loop")) void client.invalidateQueries({ queryKey: ["questions"] });
        if (/^(run|human_loop|session|message\.user)/.test(item.kind)) soon();
      }),
      live().onRestart((scope) => scope === `session:${session}` && soon()),
    ];
    void sync();
    return () => {
      clearTimeout(timer);
      stops.forEach((stop) => stop());
    };
  }, [session, client, sync]);

  // When a stream ends: what it came to, and the next run in the queue.
  const wasStreaming = useRef(false);
  useEffect(() => {
    if (wasStreaming.current && !isStreaming) {
      setStopping(false);
      busy.current = false;
      void client.invalidateQueries({ queryKey: sessionKeys.all });
      void client.invalidateQueries({ queryKey: sessionKeys.one(session) });
      // A run that failed ends its stream with an error; what is known of it is in its message.
      const hasEnded = status === "ready" || (status === "error" && !(error instanceof ApiError) && !(error instanceof TypeError));
      if (status === "error" && hasEnded) clearError();
      if (hasEnded) void sync();
    }
    wasStreaming.current = isStreaming;
  }, [isStreaming, status, error, clearError, session, client, sync]);

  // A lost connection comes back by itself: the stream is replayed from its beginning.
  const isLost = status === "error" && error instanceof TypeError;
  useEffect(() => {
    if (!isLost) return;
    failures.current += 1;
    const timer = setTimeout(() => void sync(), Math.min(LONGEST_PAUSE_MS, 500 * 2 ** failures.current));
    return () => clearTimeout(timer);
  }, [isLost, error, sync]);

  /** Begins a run; while one works, it does what the mode says. */
  async function send(text: string, mode: Mode = "queue"): Promise<void> {
    const opened = client.getQueryData<OpenedSession>(sessionKeys.one(session));
    if (!isStreaming && !opened?.open_runs.length) {
      void chat.sendMessage({ text }, { body: wishes });
      return;
    }
    await sendMessage(session, text, { mode, provider: wishes.provider, profile: wishes.executionProfile });
    await client.invalidateQueries({ queryKey: sessionKeys.one(session) });
    void sync();
  }

  async function stop(): Promise<void> {
    setStopping(true);
    try {
      await ask("POST", `/api/v1/chat/${session}/stop`);
      await client.invalidateQueries({ queryKey: sessionKeys.one(session) });
    } catch (problem) {
      setStopping(false);
      tellError(problem);
    }
  }

  async function loadOlder(): Promise<void> {
    if (older === null || isLoadingOlder.current) return;
    isLoadingOlder.current = true;
    try {
      const page = await readMessages(session, older);
      setMessages((known) => [...page.messages.filter((message) => !known.some((one) => one.id === message.id)), ...known]);
      setOlder(page.next_before);
    } catch (problem) {
      tellError(problem);
    } finally {
      isLoadingOlder.current = false;
    }
  }

  return { messages: chat.messages, status, error: isLost ? undefined : error, isLost, isStreaming, isStopping, hasOlder: older !== null, send, stop, sync, loadOlder: () => void loadOlder(), clearError };
}

export type SessionChat = ReturnType<typeof useSessionChat>;
