// The first two minutes: three agents collide, the gate merges, and one question is left.
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Check, PanelLeft } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { keys } from "../api/queries";
import { useText } from "../text";
import { Button, buttonClass, Chip, classes, IconButton, Outcome } from "../ui/basics";
import { AGENTS, type ExampleRun, type ExampleState, runExample } from "./guidedExample";
import { sessionKeys } from "./queries";
import { useHistorySheet } from "./SessionsLayout";
import { agentState, hasEnded, STATE_TONES } from "./states";

const STEPS = ["project", "run", "merge", "question"] as const;

export function ExamplePage() {
  const t = useText();
  const client = useQueryClient();
  const openHistory = useHistorySheet();
  const [state, setState] = useState<ExampleState | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const stop = useRef<AbortController>(null);
  useEffect(() => () => stop.current?.abort(), []);

  async function start() {
    const controller = new AbortController();
    stop.current = controller;
    setBusy(true);
    setError(null);
    setState({ step: "project", project: "", runs: [] });
    try {
      await runExample(setState, controller.signal);
    } catch (problem) {
      if (!controller.signal.aborted) setError(problem instanceof Error ? problem.message : String(problem));
    } finally {
      setBusy(false);
      void client.invalidateQueries({ queryKey: sessionKeys.all });
      void client.invalidateQueries({ queryKey: keys.projects });
      void client.invalidateQueries({ queryKey: ["reviews"] });
    }
  }

  const review = state?.runs.flatMap((one) => one.landing?.paths ?? []).find((path) => path.review_id);
  const at = state === null ? -1 : state.step === "done" ? STEPS.length : STEPS.indexOf(state.step);
  const isDone = state?.step === "done";
  return (
    <>
      <header className="flex h-12 shrink-0 items-center gap-2 border-b px-4">
        <IconButton label={t.sessions.history} className="lg:hidden" onClick={openHistory}><PanelLeft size={16} strokeWidth={1.5} /></IconButton>
        <h1 className="truncate text-base font-semibold">{t.example.title}</h1>
        {state?.project && <Link to="/projects/$project" params={{ project: state.project }} className="link ml-auto text-sm">{state.project}</Link>}
      </header>
      <div className="min-h-0 flex-1 overflow-auto" tabIndex={0} role="region" aria-label={t.example.title}>
        <div className="mx-auto flex max-w-[752px] flex-col gap-6 px-4 py-6">
          <p className="text-muted">{t.example.intro}</p>
          <ol className="flex flex-col gap-2">
            {STEPS.map((step, index) => (
              <li key={step} className={classes("flex items-center gap-3", index > at && "text-muted")}>
                <span className={classes("inline-flex size-5 shrink-0 items-center justify-center rounded-full border text-xs tabular", index < at ? "border-written text-written" : index === at ? "border-merged text-merged" : "border-line-strong")}>{index < at ? <Check size={12} strokeWidth={3} aria-hidden /> : index + 1}</span>
                <span className={classes(index === at && "font-medium")}>{t.example.steps[step]}</span>
              </li>
            ))}
          </ol>
          {state === null && <Button look="primary" className="w-fit" onClick={() => void start()}>{t.example.start}</Button>}
          {state && state.runs.length > 0 && <div className="grid gap-3 md:grid-cols-3">{AGENTS.map((agent) => { const one = state.runs.find((run) => run.agent === agent); return one && <Agent key={agent} one={one} />; })}</div>}
          {error && <div role="alert"><p className="mb-2 text-refused">{t.example.failed}: {error}</p></div>}
          {isDone && (
            <section data-testid="example-result" className="flex flex-col gap-4">
              <h2 className="text-lg font-semibold">{t.example.result}</h2>
              <p>{t.example.merged}</p>
              {review ? (
                <div className="flex flex-col gap-3 rounded-xl border border-accent bg-accent-soft p-4">
                  <p className="font-medium">{t.example.conflict}</p>
                  <Link to="/review" search={{ project: state.project, item: `${state.project}/${review.review_id}` }} className={classes(buttonClass("primary"), "w-fit")}>{t.example.decide}</Link>
                </div>
              ) : <p>{t.example.noQuestion}</p>}
              <p className="text-muted">{t.example.pointText}</p>
              <div className="flex flex-wrap gap-2">
                <Link to="/projects/$project/files/$" params={{ project: state.project, _splat: "plan.md" }} className={buttonClass()}>{t.example.look}</Link>
                <Link to="/projects/$project/log" params={{ project: state.project }} className={buttonClass()}>{t.example.log}</Link>
                <Link to="/sessions/new" search={{ project: state.project }} className={buttonClass()}>{t.example.chat}</Link>
              </div>
            </section>
          )}
          {state && !isBusy && <Button small className="w-fit" onClick={() => void start()}>{t.example.again}</Button>}
        </div>
      </div>
    </>
  );
}

function Agent({ one }: { one: ExampleRun }) {
  const t = useText();
  const state = agentState(one.run.state);
  return (
    <article className="panel flex flex-col gap-2 p-3" aria-label={t.example.agents[one.agent]}>
      <p className="flex-1">{t.example.agents[one.agent]}</p>
      {one.landing ? (
        <ul className="flex flex-col gap-1">{one.landing.paths.map((path) => <li key={path.path} className="flex items-center gap-2"><span className="mono min-w-0 flex-1 truncate">{path.path}</span><Outcome what={path.status} /></li>)}</ul>
      ) : (
        <span><Chip tone={hasEnded(one.run.state) ? "written" : STATE_TONES[state]} dot>{hasEnded(one.run.state) ? t.sessions.states.stopped : one.run.state === "queued" ? t.sessions.thread.queuedRun : t.sessions.states[state]}</Chip></span>
      )}
      <Link to="/sessions/$session" params={{ session: one.session }} className="link text-sm">{t.example.see}</Link>
    </article>
  );
}
