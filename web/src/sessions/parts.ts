// The messages of a session as the server streams them: the AI SDK's parts, and data of our own.
import type { DynamicToolUIPart, UIMessage } from "ai";
import type { Schemas } from "../api/client";

export type Landing = Schemas["LandingView"];
export type Todo = { todo_id: string; content: string; status: "todo" | "doing" | "done" | "canceled"; order?: number | null };
export type Option = { value: string; label: string; description?: string | null };
export type Answer = { values?: string[] | null; text?: string | null; decision?: string | null; reason?: string | null };
export type Question = {
  question_id: string;
  run_id?: string;
  kind: "question" | "permission";
  prompt: string;
  options?: Option[] | null;
  multiple?: boolean | null;
  context?: Record<string, unknown> | null;
  deadline?: string | null;
  state?: string | null;
  answer?: Answer | null;
  by?: string | null;
};
export type RunData = { run_id: string; state: string; reason?: string | null; message?: string | null; phases?: Record<string, number> | null; executor_id?: string | null };
export type Usage = { input_tokens?: number; output_tokens?: number; cache_read_tokens?: number; cache_write_tokens?: number };
export type Metadata = { run_id?: string; created_at?: string; provider?: string; model?: string | null; usage?: Usage | null; cost?: number | string | null; duration_ms?: number | null };
export type DataParts = {
  run: RunData;
  question: Question;
  todos: { todos: Todo[] };
  landing: Partial<Landing> & Pick<Landing, "state">;
  files: { paths: string[] };
  "rate-limited": { retry_after: number };
  note: { text: string };
};
export type ChatMessage = UIMessage<Metadata, DataParts>;
export type ChatPart = ChatMessage["parts"][number];
export type ToolPart = DynamicToolUIPart;

/** The newest of a kind of data, from the end of the conversation on. */
export function latest<K extends keyof DataParts>(messages: ChatMessage[], kind: K): DataParts[K] | undefined {
  for (let at = messages.length - 1; at >= 0; at--) {
    const found = messages[at]?.parts.findLast((part) => part.type === `data-${kind}`);
    if (found) return (found as unknown as { data: DataParts[K] }).data;
  }
  return undefined;
}

const SHOWS_FILES = /^mcp\.[^.]+\.show_files$/;

export const shownPaths = (part: ToolPart): string[] => {
  const paths = SHOWS_FILES.test(part.toolName) ? (part.input as { paths?: unknown } | undefined)?.paths : undefined;
  return Array.isArray(paths) ? paths.filter((path): path is string => typeof path === "string").map(projectPath) : [];
};

/** The files that the agent showed last, and the call that did it. */
export function shownFiles(messages: ChatMessage[]): { call: string; paths: string[] } | undefined {
  for (let at = messages.length - 1; at >= 0; at--) {
    const found = messages[at]?.parts.findLast((part) => part.type === "dynamic-tool" && part.state === "output-available" && shownPaths(part).length > 0) as ToolPart | undefined;
    if (found) return { call: found.toolCallId, paths: shownPaths(found) };
  }
  return undefined;
}

/** Every question of the conversation once, as it is now, the oldest first. */
export function questionsOf(messages: ChatMessage[]): Question[] {
  const found = new Map<string, Question>();
  for (const message of messages)
    for (const part of message.parts) if (part.type === "data-question") found.set(part.data.question_id, { run_id: message.metadata?.run_id ?? message.id, ...part.data });
  return [...found.values()];
}

/** What was not said of a landing is nothing. */
export const wholeLanding = (told: Partial<Landing> & Pick<Landing, "state">): Landing => ({ counts: {}, paths: [], held_back: 0, ...told });

export const isPending = (question: Question) => (question.state ?? "pending") === "pending";

export type LandingOf = { runId: string; landing: Landing };

/** What became of each run's changes, the newest run first. */
export function landingsOf(messages: ChatMessage[]): LandingOf[] {
  const found = new Map<string, Landing>();
  for (const message of messages)
    for (const part of message.parts) if (part.type === "data-landing") found.set(part.id ?? message.id, wholeLanding(part.data));
  return [...found].map(([runId, landing]) => ({ runId, landing })).reverse();
}

export type Totals = { tokens: number; input: number; output: number; cost: number };

export function totalsOf(messages: ChatMessage[]): Totals {
  const sum = { tokens: 0, input: 0, output: 0, cost: 0 };
  for (const { metadata } of messages) {
    const usage = metadata?.usage;
    const input = (usage?.input_tokens ?? 0) + (usage?.cache_read_tokens ?? 0) + (usage?.cache_write_tokens ?? 0);
    sum.input += input;
    sum.output += usage?.output_tokens ?? 0;
    sum.tokens += input + (usage?.output_tokens ?? 0);
    sum.cost += Number(metadata?.cost ?? 0) || 0;
  }
  return sum;
}

export function textOf(message: ChatMessage): string {
  return message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

/** A path as the project has it: agents often name their folder, too. */
export function projectPath(path: string): string {
  return path.replace(/^\/workspace\/+/, "").replace(/^\.\//, "");
}

const ORDER: Todo["status"][] = ["doing", "todo", "done", "canceled"];

/** By what is done with them, then by their order; without one, as they came. */
export function groupedTodos(todos: Todo[]): { status: Todo["status"]; todos: Todo[] }[] {
  const sorted = todos.map((todo, at) => ({ todo, at })).sort((a, b) => (a.todo.order ?? a.at) - (b.todo.order ?? b.at) || a.at - b.at).map(({ todo }) => todo);
  return ORDER.map((status) => ({ status, todos: sorted.filter((todo) => todo.status === status) })).filter((group) => group.todos.length > 0);
}

type TodoStep = { todo_id: string; position: number; change: string; content: string; status: Todo["status"]; order: number };

/** The moments at which the list changed: several items may change at once. */
export const todoMoments = (events: TodoStep[]): number[] => [...new Set(events.map((event) => event.position))].sort((a, b) => a - b);

/** The list as it was at a moment. */
export function todosAt(events: TodoStep[], moment: number): Todo[] {
  const todos = new Map<string, Todo>();
  for (const { todo_id, position, change, content, status, order } of events) {
    if (position > moment) continue;
    if (change === "removed") todos.delete(todo_id);
    else todos.set(todo_id, { todo_id, content, status, order });
  }
  return [...todos.values()];
}
