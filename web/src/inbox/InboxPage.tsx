// One list of what waits for a person: questions of agents, reviews, runs that failed, files that cannot be stored, budgets.
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { meQuery, projectsQuery, reviewsQuery } from "../api/queries";
import { useLiveProjects } from "../live/hooks";
import { QuestionCard } from "../sessions/QuestionCard";
import { useText } from "../text";
import { Age, Chip, classes, Empty, PageHeader, Skeleton, type Tone } from "../ui/basics";
import { shortName } from "../ui/format";
import { useListKeys } from "../ui/list";
import { questionsQuery } from "../sessions/queries";
import { formatCost } from "../sessions/states";
import { budgetsQuery, MICRO, pressing } from "./budgets";
import { failedRunsQuery } from "./failedRuns";
import { Notifications } from "./Notifications";
import { unstoredQuery } from "./unstored";

const MOST_PROJECTS = 50;
type Kind = "question" | "review" | "failed" | "unstored" | "budget";
type Item = { kind: Kind; id: string; title: string; detail: string; at: string; open: () => void };
const TONES: Record<Kind, Tone> = { question: "accent", review: "waiting", failed: "refused", unstored: "refused", budget: "waiting" };

export function InboxPage() {
  const t = useText();
  const navigate = useNavigate();
  const [filter, setFilter] = useState<Kind | "all">("all");
  const projects = useQuery(projectsQuery());
  const names = useMemo(() => (projects.data ?? []).map((one) => one.name).slice(0, MOST_PROJECTS), [projects.data]);
  useLiveProjects(names);
  const questions = useQuery(questionsQuery());
  const reviews = useQueries({ queries: names.map((name) => reviewsQuery(name, "open")) });
  const failed = useQuery(failedRunsQuery());
  const unstored = useQuery(unstoredQuery());
  const isAdmin = useQuery(meQuery()).data?.actions.includes("admin") ?? false;
  const budgets = useQuery({ ...budgetsQuery(), enabled: isAdmin });
  const items: Item[] = [
    ...pressing(budgets.data ?? []).map((one) => ({ kind: "budget" as const, id: `budget ${one.scope} ${one.subject}`, title: shortName(one.subject), detail: t.inbox.spent(formatCost(one.spent / MICRO), formatCost(one.monthly_limit / MICRO)), at: new Date(budgets.dataUpdatedAt).toISOString(), open: () => void navigate({ to: "/admin/usage" }) })),
    ...reviews.flatMap((list, index) => (list.data?.reviews ?? []).map((review) => ({ kind: "review" as const, id: review.id, title: review.path, detail: `${names[index]} · ${shortName(review.author)} · ${t.review.reasons[review.reason] ?? review.reason}`, at: review.created_at, open: () => void navigate({ to: "/review", search: { item: `${names[index]}/${review.id}` } }) }))),
    ...(failed.data ?? []).filter(({ session }) => !unstored.data?.some((one) => one.id === session.id)).map(({ session, run }) => ({ kind: "failed" as const, id: run.id, title: session.title || t.sessions.untitled, detail: run.message ?? run.reason ?? "", at: run.ended_at ?? run.created_at, open: () => void navigate({ to: "/sessions/$session", params: { session: session.id } }) })),
    ...(unstored.data ?? []).map((session) => ({ kind: "unstored" as const, id: `unstored ${session.id}`, title: session.title || t.sessions.untitled, detail: session.worker?.alert ?? "", at: session.last_active_at, open: () => void navigate({ to: "/sessions/$session", params: { session: session.id } }) })),
  ].sort((a, b) => b.at.localeCompare(a.at));
  const waiting = questions.data ?? [];
  const shown = items.filter((item) => filter === "all" || item.kind === filter);
  const list = useListKeys(shown.length, (index) => shown[index]?.open());
  const isLoading = projects.isPending || questions.isPending || reviews.some((one) => one.isPending) || failed.isPending;
  const count = waiting.length + items.length;
  const numberOf = (kind: Kind) => (kind === "question" ? waiting.length : items.filter((one) => one.kind === kind).length);
  // What is rare has a filter only while there is any of it.
  const always: Kind[] = isAdmin ? ["question", "review", "failed", "budget"] : ["question", "review", "failed"];
  const kinds = (["question", "review", "failed", "unstored", "budget"] as const).filter((kind) => always.includes(kind) || numberOf(kind) > 0);
  const filters: [Kind | "all", string, number][] = [["all", t.inbox.all, count], ...kinds.map((kind) => [kind, t.inbox.filters[kind], numberOf(kind)] as [Kind, string, number])];
  return (
    <>
      <PageHeader title={t.inbox.title} chips={count > 0 && <Chip tone="waiting">{t.inbox.open(count)}</Chip>}><Notifications count={count} /></PageHeader>
      <div className="min-h-0 flex-1 overflow-auto" tabIndex={0} role="region" aria-label={t.inbox.list}>
        <div className="mx-auto flex max-w-4xl flex-col gap-3 p-4">
          <div role="radiogroup" aria-label={t.common.filter} className="flex flex-wrap gap-1">
            {filters.map(([kind, label, number]) => <button key={kind} type="button" role="radio" aria-checked={filter === kind} onClick={() => setFilter(kind)} className={classes("h-7 rounded-full border px-3 text-xs tabular", filter === kind ? "border-line-strong bg-panel font-medium" : "border-transparent text-muted hover:text-text")}>{label} {number}</button>)}
          </div>
          {isLoading && count === 0 && <Skeleton lines={5} />}
          {!isLoading && count === 0 && <Empty title={t.inbox.empty} tall={false}>{t.inbox.emptyHint}</Empty>}
          {(filter === "all" || filter === "question") && waiting.map((question, index) => (
            <div key={question.question_id} className="flex flex-col gap-1">
              <QuestionCard question={question} withKeys={index === 0} />
              <Link to="/sessions/$session" params={{ session: question.session_id }} className="link self-end text-sm">{t.example.see}</Link>
            </div>
          ))}
          <ul className="flex flex-col" {...list.props}>
            {shown.map((item, index) => (
              <li key={item.id}>
                <button type="button" onClick={item.open} className={classes("flex min-h-14 w-full items-center gap-x-3 gap-y-1 rounded-md border-b px-3 py-2 text-left max-sm:flex-wrap max-sm:justify-between", index === list.active ? "bg-hover" : "row-hover")}>
                  <span className="shrink-0 sm:w-24"><Chip tone={TONES[item.kind]}>{t.inbox.kinds[item.kind]}</Chip></span>
                  <span className="min-w-0 flex-1 max-sm:order-last max-sm:basis-full"><span className="block truncate font-medium">{item.title}</span><span className="block text-sm text-muted max-sm:line-clamp-3 sm:truncate" title={item.detail}>{item.detail}</span></span>
                  <Age at={item.at} className="shrink-0 text-sm text-muted" />
                </button>
              </li>
            ))}
          </ul>
        </div>
      </div>
    </>
  );
}
