// What the agent is doing, how long each phase took, and where.
import { useQuery } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { useText } from "../../text";
import { Age, Chip, classes, Empty } from "../../ui/basics";
import { latest } from "../parts";
import { runsQuery } from "../queries";
import { agentState, formatCost, formatCount, formatDuration, hasEnded, PHASES, STATE_TONES, worked } from "../states";
import type { PanelProps } from "./Panel";

export function AgentTab({ session, messages, totals, questions }: PanelProps) {
  const t = useText().sessions;
  const latestRun = useQuery(runsQuery(session.id, 1)).data?.runs[0];
  const run = session.open_runs[0] ?? latestRun;
  const told = latest(messages, "run");
  const [now, setNow] = useState(Date.now());
  const isOpen = run !== undefined && !hasEnded(run.state);
  useEffect(() => {
    if (!isOpen) return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [isOpen]);
  if (!run) return <Empty title={t.agent.noRun}>{t.agent.noRunHint}</Empty>;
  const state = questions.some((question) => (question.state ?? "pending") === "pending") && isOpen ? "waiting" : agentState(run.state);
  const current = run.state === "waiting_human" ? "running" : run.state === "exported" ? "syncing" : run.state;
  const took = (phase: string) => (run.phases[phase] ?? 0) + (phase === "running" ? (run.phases.waiting_human ?? 0) : 0) + (phase === current && isOpen ? Math.max(0, now - new Date(run.state_at).getTime()) : 0);
  const error = run.state === "failed" ? [run.reason, run.message].filter(Boolean).join(": ") : (run.place?.last_error ?? session.worker?.last_sync_error);
  const facts: [string, ReactNode][] = [
    [t.agent.run, <code key="run" className="mono">{run.number} · {run.id.slice(0, 8)}</code>],
    [t.agent.executor, <code key="executor" className="mono break-all">{told?.run_id === run.id && told.executor_id ? told.executor_id : "–"}</code>],
    [t.agent.machine, run.machine ?? session.worker?.machine ?? "–"],
    [t.agent.program, [run.provider, run.cli_version].filter(Boolean).join(" ")],
    [t.agent.model, run.model ?? session.model ?? "–"],
    [t.agent.attempt, String(run.attempt)],
    [t.agent.started, run.started_at ? <Age key="started" at={run.started_at} /> : "–"],
    [t.agent.took, formatDuration(isOpen && run.started_at ? now - new Date(run.started_at).getTime() : worked(run))],
    [t.agent.worker, session.worker?.state ?? "–"],
    [t.agent.synced, session.worker?.last_sync_at ? <Age key="synced" at={session.worker.last_sync_at} /> : t.agent.never],
    [t.agent.lands, t.draft.lands[session.land] ?? session.land],
    [t.agent.name, <code key="name" className="mono break-all">{session.agent}</code>],
  ];
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-4 overflow-auto p-4" tabIndex={0} role="region" aria-label={t.panelTabs.agent}>
      <div className="flex items-center gap-3">
        <Chip tone={STATE_TONES[state]} dot>{t.states[state]}</Chip>
        <span className="min-w-0 text-sm text-muted">{run.state === "queued" ? `${t.thread.queuedRun}${run.place?.ahead ? `, ${t.thread.ahead(run.place.ahead)}` : ""}` : t.stateHints[state]}</span>
      </div>
      <ol aria-label={t.agent.phases} className="flex flex-col">
        {PHASES.map((phase) => {
          const isNow = phase === current && isOpen;
          const isPast = (run.phases[phase] ?? 0) > 0 && !isNow;
          return (
            <li key={phase} className={classes("flex h-7 items-center gap-2.5", !isNow && !isPast && "text-muted")}>
              <span className={classes("inline-flex size-4 shrink-0 items-center justify-center rounded-full border", isNow ? "border-merged" : isPast ? "border-written text-written" : "border-line-strong")} aria-hidden>
                {isPast && <Check size={10} strokeWidth={3} />}
                {isNow && <span className="size-1.5 animate-pulse rounded-full bg-merged" />}
              </span>
              <span className={classes(isNow && "font-medium")}>{t.states[phase]}</span>
              <span className="ml-auto text-sm text-muted tabular">{isNow || isPast ? formatDuration(took(phase)) : ""}</span>
            </li>
          );
        })}
      </ol>
      <section>
        <h2 className="mb-1 text-xs text-muted">{t.agent.lastError}</h2>
        <p className={classes("text-sm break-words", error ? "text-refused" : "text-muted")}>{error || t.agent.noError}</p>
      </section>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-sm">
        {facts.map(([name, value]) => <Fact key={name} name={name} value={value} />)}
        <Fact name={t.agent.input} value={<span className="tabular">{formatCount(totals.input)}</span>} />
        <Fact name={t.agent.output} value={<span className="tabular">{formatCount(totals.output)}</span>} />
        <Fact name={t.agent.cost} value={<span className="tabular">{formatCost(totals.cost)}</span>} />
      </dl>
    </div>
  );
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 text-right break-words">{value}</dd>
    </>
  );
}
