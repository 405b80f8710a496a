// Who may do what where, and why: a project's rules, and what they give somebody at a path.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Button, Chip, classes, Field, inputClass, Problem, Skeleton, type Tone } from "../ui/basics";
import { Table } from "../ui/table";
import { tell, tellError } from "../ui/toasts";

type Level = Schemas["RuleView"]["level"];
type Rule = Schemas["RuleView"];
const LEVELS: Level[] = ["hidden", "R", "RA", "RW-", "RW"];
const TONES: Record<Level, Tone> = { hidden: "refused", R: "plain", RA: "accent", "RW-": "accent", RW: "written" };
const route = getRouteApi("/projects/$project/access");

export function AccessPage() {
  const t = useText();
  const client = useQueryClient();
  const { project } = route.useParams();
  const key = ["project", project, "policy"];
  const policy = useQuery({ queryKey: key, queryFn: ({ signal }) => body(api.GET("/api/v1/policies", { params: { query: { project } }, signal })) });
  const refresh = () => client.invalidateQueries({ queryKey: ["project", project] });
  const put = (rule: Rule) => body(api.PUT("/api/v1/policies/rules", { body: { project, ...rule } }));
  const add = useMutation({ mutationFn: put, onSuccess: refresh, onError: tellError });
  const remove = useMutation({
    mutationFn: (rule: Rule) => body(api.DELETE("/api/v1/policies/rules", { params: { query: { project, subject: rule.subject, pattern: rule.pattern } } })),
    onSuccess: (_, rule) => {
      void refresh();
      tell(t.access.ruleRemoved, { undo: async () => { await put(rule); await refresh(); } });
    },
    onError: tellError,
  });
  if (policy.isPending) return <Skeleton lines={6} />;
  if (policy.error) return <Problem error={policy.error} retry={() => void policy.refetch()} />;
  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <div className="mx-auto flex max-w-4xl flex-col gap-6 p-4">
        <section>
          <p className="mb-3 flex flex-wrap items-center gap-2 text-muted">{t.access.intro} {t.access.default}: <LevelChip level={policy.data.default_level} /></p>
          {policy.data.rules.length === 0 && <p className="mb-3">{t.access.noRules}</p>}
          {policy.data.rules.length > 0 && (
            <Table
              label={t.access.title}
              head={[t.access.subject, t.access.pattern, t.access.level, <span key="r" className="sr-only">{t.access.remove}</span>]}
              rows={policy.data.rules.map((rule) => ({
                key: `${rule.subject} ${rule.pattern}`,
                cells: [rule.subject, <code key="p" className="mono">{rule.pattern}</code>, <LevelChip key="l" level={rule.level} />, <Button key="r" small look="quiet" onClick={() => remove.mutate(rule)}>{t.access.remove}</Button>],
              }))}
            />
          )}
          <NewRule busy={add.isPending} add={(rule) => add.mutate(rule, { onSuccess: () => tell(t.access.ruleAdded) })} />
        </section>
        <Explain project={project} />
        <section>
          <h2 className="mb-2 text-lg font-semibold">{t.access.merge}</h2>
          {policy.data.merge_rules.length === 0 ? <p className="text-muted">{t.access.mergeNone}</p> : <ul>{policy.data.merge_rules.map((rule, index) => <li key={index} className="mono py-0.5">{JSON.stringify(rule)}</li>)}</ul>}
        </section>
      </div>
    </div>
  );
}

function LevelChip({ level }: { level: Level }) {
  const t = useText();
  return <Chip tone={TONES[level]}>{level} · {t.access.levels[level]}</Chip>;
}

function NewRule({ add, busy }: { add: (rule: Rule) => void; busy: boolean }) {
  const t = useText();
  const [rule, setRule] = useState<Rule>({ subject: "", pattern: "**", level: "R" });
  function submit(event: FormEvent) {
    event.preventDefault();
    add({ ...rule, subject: rule.subject.trim(), pattern: rule.pattern.trim() });
  }
  return (
    <form onSubmit={submit} className="mt-3 flex flex-wrap items-end gap-2">
      <div className="min-w-36 flex-1"><Field label={t.access.subject}><input required className={inputClass} placeholder="agent:planner" value={rule.subject} onChange={(event) => setRule({ ...rule, subject: event.target.value })} /></Field></div>
      <div className="min-w-36 flex-1"><Field label={t.access.pattern}><input required className={classes(inputClass, "mono")} value={rule.pattern} onChange={(event) => setRule({ ...rule, pattern: event.target.value })} /></Field></div>
      <Field label={t.access.level}>
        <select className={inputClass} value={rule.level} onChange={(event) => setRule({ ...rule, level: event.target.value as Level })}>{LEVELS.map((level) => <option key={level} value={level}>{level} · {t.access.levels[level]}</option>)}</select>
      </Field>
      <Button type="submit" busy={busy}>{t.access.add}</Button>
    </form>
  );
}

function Explain({ project }: { project: string }) {
  const t = useText();
  const navigate = useNavigate();
  const search = route.useSearch();
  const [values, setValues] = useState({ who: search.who ?? "", path: search.path ?? "" });
  const answer = useQuery({
    queryKey: ["project", project, "policy", "explain", search.who, search.path],
    enabled: !!search.who && !!search.path,
    queryFn: ({ signal }) => body(api.GET("/api/v1/policies/explain", { params: { query: { project, principal: search.who ?? "", path: search.path ?? "" } }, signal })),
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    void navigate({ to: "/projects/$project/access", params: { project }, search: { who: values.who.trim(), path: values.path.trim() } });
  }
  return (
    <section>
      <h2 className="mb-1 text-lg font-semibold">{t.access.explain}</h2>
      <p className="mb-2 text-muted">{t.access.explainIntro}</p>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <div className="min-w-36 flex-1"><Field label={t.access.who}><input required className={inputClass} placeholder="agent:planner" value={values.who} onChange={(event) => setValues({ ...values, who: event.target.value })} /></Field></div>
        <div className="min-w-36 flex-1"><Field label={t.access.path}><input required className={classes(inputClass, "mono")} value={values.path} onChange={(event) => setValues({ ...values, path: event.target.value })} /></Field></div>
        <Button type="submit">{t.access.explain}</Button>
      </form>
      {answer.error && <p role="alert" className="mt-2 text-refused">{answer.error.message}</p>}
      {answer.data && <p className="mt-3 flex flex-wrap items-center gap-2"><LevelChip level={answer.data.level} /><span>{t.access.because}: {answer.data.reason}</span></p>}
    </section>
  );
}
