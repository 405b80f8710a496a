// What stands beside the conversation.
import { Tabs } from "radix-ui";
import { useText } from "../../text";
import { useShownTab } from "../../ui/tabBar";
import { type ChatMessage, isPending, latest, type Question, type Totals } from "../parts";
import type { OpenedSession } from "../queries";
import { AgentTab } from "./AgentTab";
import { AskTab } from "./AskTab";
import { ChangesTab } from "./ChangesTab";
import { FilesTab } from "./FilesTab";
import { PreviewTab } from "./PreviewTab";
import { PANEL_TABS, type PanelTab } from "./tabs";
import { TerminalTab } from "./TerminalTab";
import { TodoTab } from "./TodoTab";

export type PanelProps = {
  session: OpenedSession;
  project: string | undefined;
  messages: ChatMessage[];
  questions: Question[];
  totals: Totals;
  tab: PanelTab;
  file: string | undefined;
  onShow: (changes: { panel?: PanelTab; file?: string }) => void;
  onSettled: () => Promise<void>;
};

export function Panel(props: PanelProps) {
  const t = useText().sessions;
  const todos = latest(props.messages, "todos")?.todos ?? [];
  const bar = useShownTab<HTMLDivElement>(props.tab);
  const pending = props.questions.filter(isPending).length;
  const counts: Partial<Record<PanelTab, string>> = {
    todo: todos.length ? `${todos.filter((todo) => todo.status === "done").length}/${todos.length}` : "",
    ask: pending ? String(pending) : "",
  };
  const isOwn = props.session.access === "own"; // the folder is the owner's alone
  const isShown: Partial<Record<PanelTab, boolean>> = { files: isOwn, preview: isOwn && (props.file !== undefined || props.tab === "preview"), terminal: props.session.has_terminal || props.tab === "terminal" };
  const content = (tab: PanelTab) => {
    switch (tab) {
      case "agent": return <AgentTab {...props} />;
      case "todo": return <TodoTab todos={todos} run={props.messages.findLast((message) => message.parts.some((part) => part.type === "data-todos"))?.id} />;
      case "changes": return <ChangesTab {...props} />;
      case "files": return <FilesTab {...props} />;
      case "preview": return <PreviewTab {...props} />;
      case "terminal": return <TerminalTab {...props} />;
      case "ask": return <AskTab questions={props.questions} />;
    }
  };
  return (
    <Tabs.Root value={props.tab} onValueChange={(panel) => props.onShow({ panel: panel as PanelTab })} className="flex min-h-0 flex-1 flex-col">
      <Tabs.List ref={bar} aria-label={t.panel} className="flex h-11 shrink-0 items-center gap-0.5 overflow-x-auto border-b px-2">
        {PANEL_TABS.filter((tab) => isShown[tab] ?? true).map((tab) => (
          <Tabs.Trigger key={tab} value={tab} className="h-8 shrink-0 rounded-md border border-transparent px-2 text-sm text-muted hover:text-text data-[state=active]:border-line data-[state=active]:bg-panel data-[state=active]:font-medium data-[state=active]:text-text">
            {t.panelTabs[tab]}{counts[tab] && <span className={tab === "ask" ? "ml-1.5 rounded-full bg-accent-soft px-1.5 text-xs text-accent tabular" : "ml-1.5 text-xs tabular"}>{counts[tab]}</span>}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      <Tabs.Content value={props.tab} tabIndex={-1} className="flex min-h-0 flex-1 flex-col focus:outline-none">{content(props.tab)}</Tabs.Content>
    </Tabs.Root>
  );
}
