import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { MoreHorizontal, PanelLeft, PanelRight } from "lucide-react";
import { DropdownMenu as Menu } from "radix-ui";
import { useEffect, useState } from "react";
import { api, body } from "../api/client";
import { meQuery } from "../api/queries";
import { useText } from "../text";
import { Button, Chip, classes, IconButton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { shortName } from "../ui/format";
import { tell, tellError } from "../ui/toasts";
import type { Totals } from "./parts";
import { type Profile, PROFILES, providerName, type Wishes } from "./profiles";
import { agentsQuery, type OpenedSession, type Run, sessionKeys } from "./queries";
import { ShareDialog } from "./ShareDialog";
import { useHistorySheet } from "./SessionsLayout";
import { agentState, formatClock, formatCost, formatCount, hasEnded, STATE_TONES } from "./states";

type Props = { session: OpenedSession; project?: string; run?: Run; totals: Totals; questions: number; wishes: Wishes; onWishes: (wishes: Wishes) => void; onPanel: () => void };

export function SessionHeader({ session, project, run, totals, questions, wishes, onWishes, onPanel }: Props) {
  const t = useText().sessions;
  const openHistory = useHistorySheet();
  const agents = (useQuery(agentsQuery()).data?.agents ?? []).filter((one) => one.is_installed);
  const provider = wishes.provider ?? session.provider;
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-b px-2 sm:px-4">
      <IconButton label={t.history} className="lg:hidden" onClick={openHistory}><PanelLeft size={16} strokeWidth={1.5} /></IconButton>
      <h1 className="flex min-w-0 items-baseline gap-2 text-base">
        {session.app ? <Link to="/store/$app" params={{ app: session.app }} className="hidden max-w-40 shrink-0 truncate text-muted hover:text-text sm:block">{session.app}</Link> : project && <Link to="/projects/$project" params={{ project }} className="hidden max-w-40 shrink-0 truncate text-muted hover:text-text sm:block">{project}</Link>}
        <span className="hidden text-muted sm:inline" aria-hidden>/</span>
        <span className="truncate font-semibold" title={session.title}>{session.title || t.untitled}</span>
      </h1>
      <StateChip run={run} questions={questions} />
      {session.access !== "own" && <span className="hidden shrink-0 sm:inline" data-testid="shared"><Chip title={t.share.levels[session.access]}>{t.share.by(shortName(session.owner))}</Chip></span>}
      <span className="ml-auto" />
      {totals.tokens > 0 && <span className="hidden shrink-0 text-sm text-muted tabular md:inline">{t.thread.tokens(formatCount(totals.tokens))}{totals.cost > 0 && ` · ${formatCost(totals.cost)}`}</span>}
      {session.access !== "read" && <select aria-label={t.draft.provider} className={choice} value={provider} onChange={(event) => onWishes({ ...wishes, provider: event.target.value })}>
        {[...new Set([provider, ...agents.map((one) => one.name)])].map((one) => <option key={one} value={one}>{providerName(one)}</option>)}
      </select>}
      {session.access !== "read" && <select aria-label={t.composer.profile} className={choice} value={wishes.executionProfile ?? session.profile} onChange={(event) => onWishes({ ...wishes, executionProfile: event.target.value as Profile })}>
        {PROFILES.map((one) => <option key={one} value={one}>{t.composer.profiles[one]}</option>)}
      </select>}
      <SessionMenu session={session} />
      <IconButton label={t.panel} className="xl:hidden" onClick={onPanel}><PanelRight size={16} strokeWidth={1.5} /></IconButton>
    </header>
  );
}

const choice = "hidden h-7 max-w-40 rounded-md border border-line-strong bg-panel px-1.5 text-xs md:block";

function StateChip({ run, questions }: { run?: Run; questions: number }) {
  const t = useText().sessions;
  const [, tick] = useState(0);
  const isOpen = run !== undefined && !hasEnded(run.state);
  useEffect(() => {
    if (!isOpen) return;
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [isOpen]);
  if (!isOpen) return null;
  const state = questions > 0 ? "waiting" : agentState(run.state);
  const since = run.started_at ?? run.created_at;
  return <span className="shrink-0" data-testid="state"><Chip tone={STATE_TONES[state]} dot>{run.state === "queued" ? t.thread.queuedRun : t.states[state]} · {formatClock(Date.now() - new Date(since).getTime())}</Chip></span>;
}

const item = "flex h-8 cursor-default items-center gap-2 rounded-md px-2 text-sm outline-none data-[highlighted]:bg-hover";

function SessionMenu({ session }: { session: OpenedSession }) {
  const t = useText();
  const navigate = useNavigate();
  const client = useQueryClient();
  const me = useQuery(meQuery()).data;
  const [asks, setAsks] = useState(false);
  const [isSharing, setSharing] = useState(false);
  const isOwn = session.access === "own";
  const path = { session: session.id };
  const changed = () => {
    void client.invalidateQueries({ queryKey: sessionKeys.one(session.id) });
    void client.invalidateQueries({ queryKey: sessionKeys.all });
  };
  const pin = useMutation({ mutationFn: () => body(api.POST(session.pinned ? "/api/v1/sessions/{session}/unpin" : "/api/v1/sessions/{session}/pin", { params: { path } })), onSuccess: changed, onError: tellError });
  const close = useMutation({ mutationFn: () => body(api.POST("/api/v1/sessions/{session}/close", { params: { path } })), onSuccess: changed, onError: tellError });
  const remove = useMutation({
    mutationFn: () => body(api.DELETE("/api/v1/sessions/{session}", { params: { path } })),
    onSuccess: async () => {
      setAsks(false);
      tell(t.sessions.removed);
      await client.invalidateQueries({ queryKey: sessionKeys.all });
      await navigate({ to: "/sessions/new", replace: true });
    },
    onError: tellError,
  });
  const leave = useMutation({
    mutationFn: () => body(api.DELETE("/api/v1/sessions/{session}/shares/{user}", { params: { path: { session: session.id, user: me ? shortName(me.principal) : "" } } })),
    onSuccess: async () => {
      tell(t.sessions.share.left);
      await client.invalidateQueries({ queryKey: sessionKeys.all });
      await navigate({ to: "/sessions", replace: true });
    },
    onError: tellError,
  });
  return (
    <>
      <ShareDialog session={session.id} open={isSharing} onClose={() => setSharing(false)} />
      <Menu.Root modal={false}>
        <Menu.Trigger asChild><IconButton label={t.sessions.more}><MoreHorizontal size={16} strokeWidth={1.5} /></IconButton></Menu.Trigger>
        <Menu.Portal>
          <Menu.Content align="end" collisionPadding={8} className="z-50 min-w-56 animate-appear rounded-lg border bg-panel p-1 shadow-float">
            {!isOwn && <Menu.Item className={item} onSelect={() => leave.mutate()}>{t.sessions.share.leave}</Menu.Item>}
            {isOwn && <Menu.Item className={item} onSelect={() => setSharing(true)}>{t.sessions.share.open}</Menu.Item>}
            {isOwn && session.state !== "closed" && <Menu.Item className={item} onSelect={() => pin.mutate()}>{session.pinned ? t.sessions.unpin : t.sessions.pin}</Menu.Item>}
            {isOwn && session.state !== "closed" && <Menu.Item className={item} onSelect={() => close.mutate()}>{t.sessions.close}</Menu.Item>}
            {isOwn && <Menu.Item className={classes(item, "text-refused")} onSelect={() => setAsks(true)}>{t.sessions.remove}</Menu.Item>}
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      <Dialog title={t.sessions.removeTitle} open={asks} onClose={() => setAsks(false)}>
        <div className="flex flex-col gap-4 p-4">
          <p className="text-muted">{t.sessions.removeHint}</p>
          <Button look="danger" className="self-end" busy={remove.isPending} onClick={() => remove.mutate()}>{t.sessions.remove}</Button>
        </div>
      </Dialog>
    </>
  );
}
