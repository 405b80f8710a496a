// The agent's list of steps, grouped by what is done with them, and how it changed: any moment of it can be seen again.
import { useQuery } from "@tanstack/react-query";
import { Check, CircleDashed, LoaderCircle, X } from "lucide-react";
import { useState } from "react";
import { useText } from "../../text";
import { Age, Button, classes, Empty } from "../../ui/basics";
import { groupedTodos, type Todo, todoMoments, todosAt } from "../parts";
import { todoEventsQuery } from "../queries";

const ICONS = { doing: LoaderCircle, todo: CircleDashed, done: Check, canceled: X };
const COLORS = { doing: "text-merged", todo: "text-muted", done: "text-written", canceled: "text-muted" };

export function TodoTab({ todos, run }: { todos: Todo[]; run: string | undefined }) {
  const t = useText().sessions.todo;
  const events = useQuery({ ...todoEventsQuery(todos.length ? run : undefined), refetchOnMount: "always" }).data ?? [];
  const moments = todoMoments(events);
  const [step, setStep] = useState<number | null>(null);
  const moment = step === null ? undefined : moments[step - 1];
  const shown = moment === undefined ? todos : todosAt(events, moment);
  if (todos.length === 0) return <Empty title={t.none}>{t.noneHint}</Empty>;
  const done = shown.filter((todo) => todo.status === "done").length;
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-4 overflow-auto p-4" tabIndex={0} role="region" aria-label={t.progress(done, shown.length)}>
      <div>
        <p className="mb-1.5 text-sm text-muted tabular">{t.progress(done, shown.length)}</p>
        <div className="h-1 overflow-hidden rounded-full bg-hover"><div className="h-full bg-written" style={{ width: `${(100 * done) / Math.max(1, shown.length)}%` }} /></div>
      </div>
      {groupedTodos(shown).map((group) => {
        const Icon = ICONS[group.status];
        return (
          <section key={group.status}>
            <h2 className="mb-1 text-xs text-muted">{t[group.status]} · {group.todos.length}</h2>
            <ul className="flex flex-col gap-1.5">
              {group.todos.map((todo) => (
                <li key={todo.todo_id} className={classes("flex items-start gap-2", todo.status === "canceled" && "text-muted line-through", todo.status === "done" && "text-muted")}>
                  <Icon size={14} strokeWidth={1.75} className={classes("mt-[3px] shrink-0", COLORS[todo.status])} aria-hidden />
                  <span className="min-w-0 break-words">{todo.content}</span>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
      {moments.length > 1 && (
        <section className="mt-auto border-t pt-3">
          <h2 className="mb-1 flex items-center gap-2 text-xs text-muted">{t.timeline}{step !== null && <Button small look="quiet" className="ml-auto" onClick={() => setStep(null)}>{t.now}</Button>}</h2>
          <input type="range" aria-label={t.replay} className="w-full accent-[var(--accent)]" min={1} max={moments.length} value={step ?? moments.length} aria-valuetext={t.at(step ?? moments.length, moments.length)} onChange={(event) => setStep(Number(event.target.value) === moments.length ? null : Number(event.target.value))} />
          <ol className="mt-2 flex flex-col gap-1 text-sm">
            {events.filter((event) => moment === undefined || event.position <= moment).slice(-8).reverse().map((event) => (
              <li key={`${event.position}:${event.todo_id}`} className="flex gap-2"><span className="min-w-0 flex-1 truncate" title={event.content}>{event.content}</span><span className="shrink-0 text-muted">{event.change === "removed" ? t.changes.removed : t[event.status]}</span><Age at={event.ts} className="w-14 shrink-0 text-right text-muted" /></li>
            ))}
          </ol>
        </section>
      )}
    </div>
  );
}
