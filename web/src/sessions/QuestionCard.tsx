// A question of an agent: the only thing in a conversation with an accent border. Number keys answer it.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { Hunk } from "../projects/DiffView";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Button, classes, inputClass, Kbd } from "../ui/basics";
import { shortName } from "../ui/format";
import { type Answer, isPending, type Option, type Question } from "./parts";
import { formatClock } from "./states";

type Reply = Partial<Schemas["QuestionReplyBody"]>;

export function useReply(question: Question) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (answer: Reply) => body(api.POST("/api/v1/runs/{run}/human-loop/{question_id}/reply", { params: { path: { run: question.run_id ?? "", question_id: question.question_id } }, body: { values: [], ...answer } })),
    onSettled: () => void client.invalidateQueries({ queryKey: ["questions"] }),
  });
}

export function QuestionCard({ question, withKeys = false }: { question: Question; withKeys?: boolean }) {
  const t = useText().sessions.question;
  const reply = useReply(question);
  const pending = isPending(question) && !reply.isSuccess;
  if (!pending) return <Answered question={question} sent={reply.variables} />;
  return (
    <section aria-label={question.kind === "permission" ? t.permission : t.waits} data-question={question.question_id} className="flex flex-col gap-2 rounded-xl border border-accent bg-accent-soft p-4">
      <div className="flex flex-wrap items-baseline gap-x-3">
        <p className="min-w-0 flex-1 font-semibold break-words whitespace-pre-wrap">{question.prompt}</p>
        {question.deadline && <Deadline at={question.deadline} />}
      </div>
      <Context context={question.context} />
      {question.kind === "permission" ? <Permission reply={reply.mutate} busy={reply.isPending} withKeys={withKeys} /> : <Choices key={question.question_id} question={question} reply={reply.mutate} busy={reply.isPending} withKeys={withKeys} />}
      {reply.error && <p role="alert" className="text-sm text-refused">{reply.error.message}</p>}
    </section>
  );
}

function Answered({ question, sent }: { question: Question; sent?: Answer }) {
  const t = useText().sessions.question;
  const answer = question.answer ?? sent;
  const state = isPending(question) ? "answered" : (question.state ?? "answered");
  const label = (value: string) => question.options?.find((option) => option.value === value)?.label ?? value;
  const decisions: Record<string, string> = { allow_once: t.allowOnce, allow_session: t.allowSession, deny: t.deny };
  const said = [...(answer?.values ?? []).map(label), answer?.text, answer?.decision && (decisions[answer.decision] ?? answer.decision), answer?.reason].filter(Boolean).join(" · ");
  return (
    <section data-question={question.question_id} className="rounded-lg border px-3 py-2 text-sm">
      <p className="break-words whitespace-pre-wrap text-muted">{question.prompt}</p>
      <p className="mt-1 break-words"><span className="font-medium">{said || (t as unknown as Record<string, string>)[state] || state}</span>{said && <span className="ml-2 text-muted">{(t as unknown as Record<string, string>)[state] ?? state}{question.by && ` ${t.by(shortName(question.by))}`}</span>}</p>
    </section>
  );
}

function Context({ context }: { context?: Question["context"] }) {
  if (!context) return null;
  const { diff, text, path, command, detail, description } = context as Record<string, unknown>;
  const words = [text, detail, description].find((value) => typeof value === "string" && value) as string | undefined;
  const place = [command, path].find((value) => typeof value === "string" && value) as string | undefined;
  const lines = typeof diff === "string" ? diff.split("\n").filter((line) => /^[-+ ]/.test(line) && !/^(---|\+\+\+) /.test(line)) : [];
  return (
    <>
      {words && <p className="break-words whitespace-pre-wrap text-muted">{words}</p>}
      {place && <code className="mono block overflow-x-auto rounded-md border bg-panel px-3 py-1.5" tabIndex={0}>{place}</code>}
      {lines.length > 0 && <div className="max-h-64 overflow-auto rounded-md border bg-panel py-1" tabIndex={0} role="region" aria-label={place ?? ""}><Hunk hunk={{ old_start: 1, new_start: 1, lines: lines.slice(0, 200) }} /></div>}
    </>
  );
}

function Deadline({ at }: { at: string }) {
  const t = useText().sessions.question;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = new Date(at).getTime() - now;
  const shown = left > 3_600_000 ? `${Math.round(left / 3_600_000)} h` : left > 120_000 ? `${Math.round(left / 60_000)} min` : formatClock(left);
  return <span className="text-sm text-muted tabular">{left > 0 ? t.deadline(shown) : t.over}</span>;
}

type Answering = { reply: (answer: Reply) => void; busy: boolean; withKeys: boolean };

function Choices({ question, reply, busy, withKeys }: Answering & { question: Question }) {
  const t = useText().sessions.question;
  const options = question.options ?? [];
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [words, setWords] = useState("");
  const [isElse, setElse] = useState(options.length === 0);
  const choose = (option: Option) => {
    if (!question.multiple) return reply({ values: [option.value] });
    setChosen((now) => {
      const next = new Set(now);
      if (!next.delete(option.value)) next.add(option.value);
      return next;
    });
  };
  function submit(event: FormEvent) {
    event.preventDefault();
    const text = words.trim();
    if (text || chosen.size) reply({ values: [...chosen], ...(text ? { text } : {}) });
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-2">
      {question.multiple && <p className="text-sm text-muted">{t.pick}</p>}
      {options.map((option, index) => (
        <Choice key={option.value} number={index + 1} label={option.label} description={option.description} isChosen={question.multiple ? chosen.has(option.value) : undefined} disabled={busy} withKeys={withKeys} onChoose={() => choose(option)} />
      ))}
      {options.length > 0 && !isElse && <Choice number={options.length + 1} label={t.else} isQuiet disabled={busy} withKeys={withKeys} onChoose={() => setElse(true)} />}
      {isElse && <textarea autoFocus={options.length > 0} rows={2} aria-label={t.answer} placeholder={t.answer} className={classes(inputClass, "h-auto py-1.5")} value={words} onChange={(event) => setWords(event.target.value)} onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) submit(event); }} />}
      {(isElse || question.multiple) && <Button type="submit" look="primary" className="self-end" busy={busy} disabled={!words.trim() && chosen.size === 0}>{t.send}</Button>}
    </form>
  );
}

function Permission({ reply, busy, withKeys }: Answering) {
  const t = useText().sessions.question;
  const [reason, setReason] = useState<string | null>(null);
  if (reason !== null)
    return (
      <form className="flex flex-wrap gap-2" onSubmit={(event) => { event.preventDefault(); reply({ decision: "deny", ...(reason.trim() ? { reason: reason.trim() } : {}) }); }}>
        <input autoFocus className={classes(inputClass, "min-w-40 flex-1")} aria-label={t.reason} placeholder={t.reason} value={reason} onChange={(event) => setReason(event.target.value)} />
        <Button type="submit" look="danger" busy={busy}>{t.deny}</Button>
      </form>
    );
  return (
    <div className="flex flex-col gap-2">
      <Choice number={1} label={t.allowOnce} disabled={busy} withKeys={withKeys} onChoose={() => reply({ decision: "allow_once" })} />
      <Choice number={2} label={t.allowSession} disabled={busy} withKeys={withKeys} onChoose={() => reply({ decision: "allow_session" })} />
      <Choice number={3} label={t.deny} disabled={busy} withKeys={withKeys} onChoose={() => setReason("")} />
    </div>
  );
}

function Choice({ number, label, description, isChosen, isQuiet, disabled, withKeys, onChoose }: { number: number; label: string; description?: string | null; isChosen?: boolean; isQuiet?: boolean; disabled: boolean; withKeys: boolean; onChoose: () => void }) {
  useShortcut(String(number), label, onChoose, withKeys && number <= 9 && !disabled);
  return (
    <button type="button" aria-pressed={isChosen} disabled={disabled} onClick={onChoose} className={classes("flex min-h-9 items-center gap-3 rounded-md border border-line-strong bg-panel px-3 py-1.5 text-left hover:bg-hover disabled:opacity-50", isChosen && "border-accent", isQuiet && "text-muted")}>
      <Kbd>{number}</Kbd>
      <span className="min-w-0 break-words">{label}{description && <span className="block text-sm text-muted">{description}</span>}</span>
    </button>
  );
}
