// Along the bottom: one bar per commit (or few). Dragging shows everything as it was then; with Shift it compares.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from "react";
import { logQuery } from "../api/queries";
import { useText } from "../text";
import { Button, classes } from "../ui/basics";
import { formatMoment } from "../ui/format";
import { barAt, barsOf, heightOf } from "./timeline";

const LOADED = 200;

export function TimeMachine({ project, path, at }: { project: string; path: string; at?: number }) {
  const t = useText();
  const navigate = useNavigate();
  const log = useInfiniteQuery(logQuery(project, {}, LOADED));
  const bars = useMemo(() => barsOf(log.data?.pages.flatMap((page) => page.commits) ?? []), [log.data]);
  const strip = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number] | null>(null);
  const largest = Math.max(...bars.map((bar) => bar.changes), 1);
  const index = barAt(bars, at);
  const bar = bars[index];
  if (!log.data || bars.length === 0) return <div className="hidden h-16 shrink-0 border-t px-4 py-3 text-sm text-muted md:block">{log.isPending ? t.common.loading : t.time.none}</div>;

  const show = (wanted: number) => {
    const found = bars[Math.max(0, Math.min(bars.length - 1, wanted))];
    if (!found) return;
    const isNow = found === bars[bars.length - 1];
    void navigate({ to: "/projects/$project/files/$", params: { project, _splat: path }, search: { at: isNow ? undefined : found.last }, replace: true });
  };
  const under = (event: PointerEvent) => {
    const box = strip.current?.getBoundingClientRect();
    return box ? Math.max(0, Math.min(bars.length - 1, Math.floor(((event.clientX - box.left) / box.width) * bars.length))) : 0;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10, Home: -bars.length, End: bars.length };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    show(index + step);
  };
  return (
    <section aria-label={t.time.title} className="shrink-0 border-t px-4 pt-1.5 pb-2">
      <div className="flex items-baseline gap-3 text-sm">
        <h2 className="font-semibold">{t.time.title}</h2>
        <span className="truncate text-muted tabular" aria-live="polite">
          {at === undefined ? t.time.now : bar && formatMoment(bar.at)} · {t.time.at(at ?? bar?.last ?? 0)}
        </span>
        {log.hasNextPage && <Button small look="quiet" busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>{t.time.older}</Button>}
        <span className="ml-auto hidden text-xs text-muted lg:inline">{t.time.hint}</span>
      </div>
      <div
        ref={strip}
        role="slider"
        tabIndex={0}
        aria-label={t.time.slider}
        aria-valuemin={bars[0]?.first}
        aria-valuemax={bars[bars.length - 1]?.last}
        aria-valuenow={at ?? bars[bars.length - 1]?.last}
        aria-valuetext={at === undefined ? t.time.now : t.time.at(at)}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const one = under(event);
          if (event.shiftKey) setRange([one, one]);
          else show(one);
        }}
        onPointerMove={(event) => {
          if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
          if (range) setRange([range[0], under(event)]);
          else if (under(event) !== index) show(under(event));
        }}
        onPointerUp={() => {
          if (!range) return;
          const [from, to] = [Math.min(...range), Math.max(...range)];
          setRange(null);
          const [old, now] = [bars[from], bars[to]];
          if (old && now) void navigate({ to: "/projects/$project/compare", params: { project }, search: { old: String(old.first - (from === to ? 1 : 0)), new: String(now.last), path: path || undefined } });
        }}
        className="mt-1 flex h-8 cursor-ew-resize touch-none items-end gap-px"
      >
        {bars.map((one, position) => {
          const inRange = range && position >= Math.min(...range) && position <= Math.max(...range);
          return (
            <div
              key={one.first}
              title={`${t.time.at(one.last)} · ${formatMoment(one.at)} · ${t.projects.commits(one.commits)}`}
              style={{ height: `${heightOf(one.changes, largest) * 100}%` }}
              className={classes("max-w-8 min-w-0 flex-1 rounded-t-[2px]", inRange || position === index ? "bg-accent" : position < index ? "bg-line-strong hover:bg-faint" : "bg-line hover:bg-line-strong")}
            />
          );
        })}
      </div>
    </section>
  );
}
