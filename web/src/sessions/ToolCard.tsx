// What an agent did with a tool: one line that opens. An edit shows what it changes, a command what it printed.
import { ChevronDown, ChevronRight, FilePen, FileText, Globe, ListTodo, type LucideIcon, Search, SquareArrowOutUpRight, SquareTerminal, Wrench } from "lucide-react";
import { memo, useMemo, useState } from "react";
import { Counts, Hunk } from "../projects/DiffView";
import { useText } from "../text";
import { classes, IconButton, Outcome } from "../ui/basics";
import { counted, lineDiff } from "./lineDiff";
import { plainTerminal } from "./markdownText";
import { projectPath, shownPaths, type ToolPart } from "./parts";

const ICONS: Record<string, LucideIcon> = { bash: SquareTerminal, read: FileText, edit: FilePen, write: FilePen, search: Search, web: Globe, todo: ListTodo };
const OPEN_LINES = 14; // an edit of so many lines is shown at once
const MOST_LINES = 400;
const MOST_CHARACTERS = 60_000;

const textIn = (input: unknown, ...names: string[]): string | undefined => {
  if (typeof input !== "object" || !input) return undefined;
  for (const name of names) {
    const found = (input as Record<string, unknown>)[name];
    if (typeof found === "string") return found;
  }
  return undefined;
};

export const toolPath = (part: ToolPart): string | undefined => {
  const path = textIn(part.input, "file_path", "filePath", "path", "notebook_path");
  return path === undefined ? undefined : projectPath(path);
};

/** The lines that an edit or a new file changes; undefined for other tools. */
export function diffOf(part: ToolPart): string[] | undefined {
  const { toolName: name, input } = part;
  if (name === "write") {
    const content = textIn(input, "content", "text");
    return content === undefined ? undefined : lineDiff("", content);
  }
  if (name !== "edit") return undefined;
  const edits = (input as { edits?: unknown } | undefined)?.edits;
  const all = Array.isArray(edits) ? edits : [input];
  const lines = all.flatMap((one) => {
    const [before, after] = [textIn(one, "old_string", "oldString", "old_text", "old"), textIn(one, "new_string", "newString", "new_text", "new")];
    return before === undefined && after === undefined ? [] : lineDiff(before ?? "", after ?? "");
  });
  if (lines.length) return lines;
  const patch = textIn(input, "patch", "diff", "unified_diff");
  return patch?.split("\n").filter((line) => /^[-+ ]/.test(line) && !/^(---|\+\+\+) /.test(line));
}

function printed(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  const text = textIn(value, "output", "stdout", "text", "content");
  return text ?? JSON.stringify(value, null, 2);
}

export const ToolCard = memo(function ToolCard({ part, outcome, onOpenFile }: { part: ToolPart; outcome?: string; onOpenFile?: (path: string) => void }) {
  const all = useText();
  const t = all.sessions.tools;
  const name = part.toolName;
  const lines = useMemo(() => diffOf(part), [part]);
  const [choice, setOpen] = useState<boolean | null>(null);
  const isOpen = choice ?? (lines !== undefined && name === "edit" && lines.length <= OPEN_LINES);
  const path = toolPath(part);
  const isRunning = part.state === "input-streaming" || part.state === "input-available" || part.state === "approval-requested";
  const failed = part.state === "output-error" ? part.errorText : undefined;
  const Icon = ICONS[name] ?? Wrench;
  const label = name.startsWith("mcp.") ? name.slice(4).replace(".", " · ") : (t.names[name] ?? name);
  const what = path ?? textIn(part.input, "command", "query", "pattern", "url") ?? (shownPaths(part).join(", ") || part.title) ?? "";
  return (
    <div className="overflow-hidden rounded-lg border bg-panel" data-tool={name}>
      <div className="flex min-h-9 items-center gap-2 bg-sunken pr-3 pl-2">
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className="flex min-w-0 flex-1 items-center gap-2 py-1.5 text-left">
          {isOpen ? <ChevronDown size={14} className="shrink-0 text-muted" aria-hidden /> : <ChevronRight size={14} className="shrink-0 text-muted" aria-hidden />}
          <Icon size={14} strokeWidth={1.5} className="shrink-0 text-muted" aria-hidden />
          <span className="shrink-0 text-sm font-medium">{label}</span>
          <span className="mono min-w-0 flex-1 truncate text-muted" title={what}>{what.split("\n")[0]}</span>
        </button>
        {lines && <Counts {...counted(lines)} />}
        {isRunning && <span className="flex items-center gap-1.5 text-xs text-merged"><span className="size-1.5 animate-pulse rounded-full bg-current" aria-hidden />{t.running}</span>}
        {part.state === "output-denied" && <span className="text-xs text-refused">{t.denied}</span>}
        {failed !== undefined && <span className="text-xs text-refused">{t.error}</span>}
        {outcome && <Outcome what={outcome} />}
        {path && onOpenFile && <IconButton label={`${all.sessions.thread.openFile}: ${path}`} className="-mr-2 size-7" onClick={() => onOpenFile(path)}><SquareArrowOutUpRight size={13} strokeWidth={1.5} /></IconButton>}
      </div>
      {failed !== undefined && !isOpen && <p className="truncate border-t px-3 py-1 text-sm text-refused" title={failed}>{plainTerminal(failed).split("\n")[0]}</p>}
      {isOpen && <Opened part={part} lines={lines} failed={failed} path={path} />}
    </div>
  );
});

function Opened({ part, lines, failed, path }: { part: ToolPart; lines?: string[]; failed?: string; path?: string }) {
  const t = useText();
  const command = part.toolName === "bash" ? textIn(part.input, "command") : undefined;
  const output = part.state === "output-available" ? printed(part.output) : "";
  return (
    <div className="border-t">
      {lines && lines.length > 0 && (
        <div className="overflow-x-auto py-1" tabIndex={0} role="region" aria-label={`${t.compare.title}: ${path ?? ""}`}>
          <Hunk hunk={{ old_start: 1, new_start: 1, lines: lines.slice(0, MOST_LINES) }} />
          {lines.length > MOST_LINES && <p className="px-3 py-1 text-xs text-muted">{t.sessions.landing.more(lines.length - MOST_LINES)}</p>}
        </div>
      )}
      {command !== undefined && <Output label={t.sessions.tools.input} text={`$ ${command}`} />}
      {!lines && command === undefined && part.input !== undefined && path === undefined && <Output label={t.sessions.tools.input} text={JSON.stringify(part.input, null, 2)} />}
      {failed !== undefined && <Output label={t.sessions.tools.error} text={failed} isError />}
      {output && !lines && <Output label={t.sessions.tools.output} text={output} />}
      {part.state === "output-available" && !output && !lines && <p className="px-3 py-2 text-sm text-muted">{t.sessions.tools.noOutput}</p>}
    </div>
  );
}

export function Output({ label, text, isError }: { label: string; text: string; isError?: boolean }) {
  const shown = useMemo(() => plainTerminal(text.slice(0, MOST_CHARACTERS)), [text]);
  return (
    <pre tabIndex={0} aria-label={label} className={classes("mono max-h-80 overflow-auto border-b px-3 py-2 break-words whitespace-pre-wrap last:border-b-0", isError && "text-refused")}>{shown}</pre>
  );
}
