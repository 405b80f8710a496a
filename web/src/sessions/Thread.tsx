// The conversation. Only the messages in sight are in the document; the view follows new text unless somebody reads
// further up, and older messages come in above without moving what is on show.
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { type ReactNode, useDeferredValue, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useText } from "../text";
import { Button, classes } from "../ui/basics";
import { Message } from "./Message";
import type { ChatMessage } from "./parts";

const NEAR = 48; // pixels from the end that still count as the end
const GAP = 16;
const AHEAD = 600; // pixels before the top at which older messages are asked for

type Props = { messages: ChatMessage[]; liveId?: string; showId?: string; isStreaming: boolean; hasOlder: boolean; loadOlder: () => void; children?: ReactNode };

export function Thread({ messages, liveId, showId, isStreaming, hasOlder, loadOlder, children }: Props) {
  const t = useText().sessions.thread;
  const box = useRef<HTMLDivElement>(null);
  const sticks = useRef(true);
  const anchor = useRef<{ key: string; distance: number } | null>(null);
  const first = useRef<string | undefined>(undefined);
  const [isAway, setAway] = useState(false);
  const estimateSize = (index: number) => (messages[index]?.role === "user" ? 72 : 220);
  const list = useVirtualizer({
    count: messages.length,
    getScrollElement: () => box.current,
    estimateSize,
    // The first picture has the newest messages already, before anything is measured.
    initialRect: { width: 0, height: window.innerHeight },
    initialOffset: () => Math.max(0, messages.reduce((sum, _, index) => sum + estimateSize(index) + GAP, 0) - window.innerHeight),
    getItemKey: (index) => messages[index]?.id ?? index,
    overscan: 4,
    useFlushSync: false,
    paddingStart: 24,
    gap: GAP,
  });
  const size = list.getTotalSize();

  // Older messages came in above: what was at the top of the view stays there.
  useLayoutEffect(() => {
    const now = messages[0]?.id;
    const before = first.current;
    first.current = now;
    if (before === undefined || now === before || !anchor.current || sticks.current) return;
    const index = messages.findIndex((message) => message.id === anchor.current?.key);
    const found = list.measurementsCache[index];
    if (found && box.current) box.current.scrollTop = found.start + anchor.current.distance;
  }, [messages, list]);

  useLayoutEffect(() => {
    if (sticks.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [size, messages, children]);

  // A message that the address names is looked for, among older ones too, and shown once.
  const isShown = useRef("");
  useEffect(() => {
    if (!showId || isShown.current === showId) return;
    const index = messages.findIndex((message) => message.metadata?.run_id === showId || message.id === showId);
    if (index < 0) {
      if (hasOlder) loadOlder();
      return;
    }
    isShown.current = showId;
    sticks.current = false;
    list.scrollToIndex(index, { align: "start" });
  }, [showId, messages, hasOlder]);

  const last = messages.at(-1);
  const mine = last?.role === "user" ? last.id : undefined;
  useEffect(() => {
    if (mine) toEnd();
  }, [mine]);

  function toEnd() {
    sticks.current = true;
    setAway(false);
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }

  function onScroll() {
    const element = box.current;
    if (!element) return;
    sticks.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    setAway(!sticks.current);
    const top = list.getVirtualItems().find((item) => item.end > element.scrollTop);
    if (top) anchor.current = { key: String(top.key), distance: element.scrollTop - top.start };
    if (hasOlder && element.scrollTop < AHEAD) loadOlder();
  }

  // Rendered in slices: a leap with the scroll bar costs a blank moment, and no long frame.
  const items = useDeferredValue(list.getVirtualItems());
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div ref={box} onScroll={onScroll} tabIndex={0} role="region" aria-label={t.label} data-testid="thread" className="min-h-0 flex-1 overflow-y-auto [overflow-anchor:none] focus-visible:outline-offset-[-2px]">
        <div className="relative mx-auto w-full max-w-[752px]" style={{ height: size }}>
          {hasOlder && <p data-testid="older" className="absolute inset-x-0 top-1 text-center text-xs text-muted">{t.older}</p>}
          {items.map((item) => {
            const message = messages[item.index];
            if (!message) return null;
            const isLast = item.index === messages.length - 1;
            return (
              <div key={item.key} data-index={item.index} ref={list.measureElement} className={classes("absolute inset-x-0 top-0 px-4", showId !== undefined && (message.metadata?.run_id === showId || message.id === showId) && "border-l-2 border-accent")} data-shown={showId !== undefined && message.metadata?.run_id === showId ? true : undefined} style={{ transform: `translateY(${item.start}px)` }}>
                <Message message={message} isStreaming={isStreaming && message.role === "assistant" && (message.id === liveId || isLast)} isLast={isLast} />
              </div>
            );
          })}
        </div>
        <div className="mx-auto w-full max-w-[752px] px-4 pt-3 pb-6">{children}</div>
      </div>
      <div className={classes("absolute bottom-3 left-1/2 -translate-x-1/2", !isAway && "hidden")}>
        <Button small onClick={toEnd} className="shadow-float"><ArrowDown size={13} aria-hidden />{t.toEnd}</Button>
      </div>
    </div>
  );
}
