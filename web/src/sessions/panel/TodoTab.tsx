// The agent's list of steps, grouped by what is done with them, and how it changed from message to message.
import { Check, CircleDashed, LoaderCircle, X } from "lucide-react";
import { useMemo, useState } from "react";
import { useText } from "../../text";
import { Button, classes, Empty } from "../../ui/basics";
import { formatMoment } from "../../ui/format";
import { type ChatMessage, groupedTodos, type Todo } from "../parts";

const ICONS = { doing: LoaderCircle, todo: CircleDashed, done: Check, canceled: X };
const COLORS = { doing: "text-merged", todo: "text-muted", done: "text-written", canceled: "text-muted" };

export function TodoTab({ todos, messages }: { todos: Todo[]; messages: ChatMessage[] }) {
  const t = useText().sessions.todo;
  const past = useMemo(() => messages.flatMap((message) => message.parts.flatMap((part) => (part.type === "data-todos" ? [{ id: message.id, at: message.metadata?.created_at, todos: part.data.todos }] : []))), [messages]);
  const [chosen, setChosen] = useState<string | null>(null);
  const shown = past.find((one) => one.id === chosen)?.todos ?? todos;
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
      {past.length > 1 && (
        <section>
          <h2 className="mb-1 text-xs text-muted">{t.timeline}</h2>
          <div className="flex flex-wrap gap-1">
            {past.map((one) => <Button key={one.id} small look={chosen === one.id ? "plain" : "quiet"} aria-pressed={chosen === one.id} onClick={() => setChosen(one.id)}>{one.at ? formatMoment(one.at) : one.id.slice(0, 8)}</Button>)}
            <Button small look={chosen === null ? "plain" : "quiet"} aria-pressed={chosen === null} onClick={() => setChosen(null)}>{t.now}</Button>
          </div>
        </section>
      )}
    </div>
  );
}
