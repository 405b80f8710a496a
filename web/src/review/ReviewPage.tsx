// What waits for a person, and deciding it without leaving the keyboard.
import { useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { ChevronLeft } from "lucide-react";
import { useEffect, useMemo } from "react";
import type { Review } from "../api/client";
import { projectsQuery, reviewsQuery } from "../api/queries";
import { useLiveProjects } from "../live/hooks";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Age, Chip, classes, Empty, inputClass, PageHeader, Problem, Skeleton } from "../ui/basics";
import { baseName, shortName } from "../ui/format";
import { Decision } from "./Decision";

const route = getRouteApi("/review");
const MOST_PROJECTS = 50;
type Item = { project: string; review: Review };
const idOf = (item: Item) => `${item.project}/${item.review.id}`;

export function ReviewPage() {
  const t = useText();
  const navigate = useNavigate();
  const search = route.useSearch();
  const state = search.state ?? "open";
  const projects = useQuery(projectsQuery());
  const names = useMemo(
    () => (search.project ? [search.project] : (projects.data ?? []).map((one) => one.name).slice(0, MOST_PROJECTS)),
    [projects.data, search.project],
  );
  useLiveProjects(names);
  const lists = useQueries({ queries: names.map((name) => ({ ...reviewsQuery(name, state), refetchInterval: 15_000 })) });
  const items: Item[] = lists
    .flatMap((list, index) => (list.data?.reviews ?? []).map((review) => ({ project: names[index] ?? "", review })))
    .sort((a, b) => b.review.created_at.localeCompare(a.review.created_at));
  const isLoading = projects.isPending || lists.some((list) => list.isPending);
  const error = projects.error ?? (lists.length > 0 && lists.every((list) => list.error) ? lists[0]?.error : null);
  const at = items.findIndex((item) => idOf(item) === search.item);
  const go = (changes: Partial<typeof search>) => void navigate({ to: "/review", search: { ...search, ...changes }, replace: true });
  const step = (by: number) => {
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (next) go({ item: idOf(next) });
  };
  useShortcut("j", t.shortcuts.nextItem, () => step(1), items.length > 0);
  useShortcut("k", t.shortcuts.previousItem, () => step(-1), items.length > 0);

  // On a wide screen something is always on show, so that the first key already decides.
  const firstId = items[0] ? idOf(items[0]) : undefined;
  useEffect(() => {
    if (!search.item && firstId && window.matchMedia("(min-width: 768px)").matches) go({ item: firstId });
  }, [search.item, firstId]);

  const slash = search.item?.lastIndexOf("/") ?? -1;
  const [project, id] = slash > 0 ? [search.item?.slice(0, slash) ?? "", search.item?.slice(slash + 1) ?? ""] : ["", ""];
  const decided = () => {
    const next = items.filter((_, index) => index !== at)[Math.max(0, Math.min(at, items.length - 2))];
    go({ item: next ? idOf(next) : undefined });
  };
  return (
    <>
      <PageHeader title={t.review.title} chips={<Chip tone={items.length && state === "open" ? "waiting" : "plain"}>{state === "open" ? t.review.open(items.length) : `${items.length}`}</Chip>}>
        <span className="hidden text-sm text-muted lg:inline">{t.review.keys}</span>
      </PageHeader>
      <div className="flex min-h-0 flex-1">
        <section aria-label={t.review.list} className={classes("flex w-full shrink-0 flex-col border-r md:w-72", search.item && "hidden md:flex")}>
          <div className="flex gap-2 border-b p-2">
            <select className={inputClass} aria-label={t.nav.projects} value={search.project ?? ""} onChange={(event) => go({ project: event.target.value || undefined, item: undefined })}>
              <option value="">{t.review.allProjects}</option>
              {(projects.data ?? []).map((one) => <option key={one.id} value={one.name}>{one.name}</option>)}
            </select>
            <select className={inputClass} aria-label={t.review.state} value={state} onChange={(event) => go({ state: event.target.value === "open" ? undefined : (event.target.value as "resolved"), item: undefined })}>
              {(["open", "resolved", "rejected", "obsolete"] as const).map((one) => <option key={one} value={one}>{t.review.states[one]}</option>)}
            </select>
          </div>
          {isLoading && items.length === 0 && <Skeleton lines={5} />}
          {error && <Problem error={error} />}
          {!isLoading && !error && items.length === 0 && <Empty title={t.review.empty}>{t.review.emptyHint}</Empty>}
          <ul className="min-h-0 flex-1 overflow-auto p-2">
            {items.map((item) => <ListItem key={idOf(item)} item={item} isActive={idOf(item) === search.item} showProject={!search.project} />)}
          </ul>
        </section>
        <section className={classes("min-h-0 min-w-0 flex-1 flex-col", search.item ? "flex" : "hidden md:flex")} aria-label={t.review.title}>
          {search.item && (
            <Link to="/review" search={{ ...search, item: undefined }} className="flex items-center gap-1 border-b px-3 py-2 text-sm text-muted md:hidden"><ChevronLeft size={15} aria-hidden />{t.review.list}</Link>
          )}
          {project && id ? <Decision key={search.item} project={project} id={id} onDecided={decided} /> : !isLoading && items.length > 0 && <Empty title={t.review.title}>{t.review.keys}</Empty>}
        </section>
      </div>
    </>
  );
}

function ListItem({ item: { project, review }, isActive, showProject }: { item: Item; isActive: boolean; showProject: boolean }) {
  const t = useText();
  return (
    <li>
      <Link
        to="/review"
        search={(before) => ({ ...before, item: `${project}/${review.id}` })}
        replace
        aria-current={isActive || undefined}
        ref={isActive ? (node: HTMLAnchorElement | null) => node?.scrollIntoView({ block: "nearest" }) : undefined}
        className={classes("block rounded-md px-3 py-2", isActive ? "bg-accent-soft" : "row-hover")}
      >
        <span className="flex items-baseline gap-2">
          <span className="min-w-0 flex-1 truncate font-medium" title={review.path}>{baseName(review.path)}</span>
          <Age at={review.created_at} className="text-xs text-muted" />
        </span>
        <span className="block text-sm text-muted">{t.review.reasons[review.reason] ?? review.reason}</span>
        <span className="block truncate text-xs text-muted">{shortName(review.author)}{showProject && ` · ${project}`}{review.claim && ` · ${t.review.claimedBy(shortName(review.claim.by))}`}</span>
      </Link>
    </li>
  );
}
