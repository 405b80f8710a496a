import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { api, body } from "../api/client";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Button, classes, Empty, inputClass, Problem, Skeleton } from "../ui/basics";

const route = getRouteApi("/projects/$project/search");

export function SearchPage() {
  const t = useText();
  const navigate = useNavigate();
  const { project } = route.useParams();
  const search = route.useSearch();
  const { q = "", glob } = search;
  const at = search.at === undefined ? "head" : String(search.at);
  const contents = useInfiniteQuery({
    queryKey: ["project", project, "contents", search],
    enabled: q !== "",
    initialPageParam: undefined as string | undefined,
    queryFn: ({ signal, pageParam }) =>
      body(
        api.GET("/api/v1/search/contents", {
          params: {
            query: { project, pattern: q, regex: !!search.regex, ignore_case: !search.case, whole_word: !!search.word, glob: glob ? glob.split(/[\s,]+/).filter(Boolean) : undefined, limit: 200, ...(pageParam ? { cursor: pageParam } : { at }) },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.cursor ?? undefined,
  });
  const names = useQuery({
    queryKey: ["project", project, "names", q, at],
    enabled: q !== "" && q.length <= 200,
    queryFn: ({ signal }) => body(api.GET("/api/v1/search/names", { params: { query: { project, name: q, at, limit: 8 } }, signal })),
  });
  const pages = contents.data?.pages ?? [];
  const files = pages.flatMap((page) => page.files);
  const skipped = pages.flatMap((page) => page.skipped).length;
  const seq = pages[0]?.seq;
  const count = files.reduce((sum, file) => sum + file.lines.length, 0);
  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <div className="mx-auto max-w-4xl px-4 pb-10">
        <Question key={JSON.stringify(search)} search={search} go={(changes) => void navigate({ to: "/projects/$project/search", params: { project }, search: { ...search, ...changes } })} />
        {q === "" && <Empty title={t.search.empty}>{t.search.emptyHint}</Empty>}
        {q !== "" && contents.isPending && <Skeleton lines={8} />}
        {contents.error && <Problem error={contents.error} retry={() => void contents.refetch()} />}
        {!!names.data?.paths.length && (
          <section className="mb-4">
            <h2 className="mb-1 text-xs text-muted">{t.search.names}</h2>
            <ul>{names.data.paths.map((path) => <li key={path}><Link to="/projects/$project/files/$" params={{ project, _splat: path }} search={{ at: search.at }} className="mono block truncate rounded-md px-2 py-1 hover:bg-hover">{path}</Link></li>)}</ul>
          </section>
        )}
        {contents.isSuccess && (
          <section>
            <h2 className="mb-1 text-xs text-muted">{t.search.contents}{files.length > 0 && ` · ${t.search.files(files.length, count)}`}</h2>
            {files.length === 0 && <Empty title={t.search.none} tall={false}>{t.search.noneHint}</Empty>}
            {files.map((file) => <FileMatches key={file.path} project={project} file={file} seq={seq} />)}
          </section>
        )}
        {skipped > 0 && <p className="py-2 text-sm text-muted">{t.search.skipped(skipped)}</p>}
        {contents.hasNextPage && <Button busy={contents.isFetchingNextPage} onClick={() => void contents.fetchNextPage()}>{t.common.more}</Button>}
      </div>
    </div>
  );
}

type FileMatch = { path: string; lines: { number: number; text: string; ranges: number[][] | null }[] };
type Search = { q?: string; regex?: true; case?: true; word?: true; glob?: string };

function Question({ search, go }: { search: Search; go: (changes: Partial<Search>) => void }) {
  const t = useText();
  const input = useRef<HTMLInputElement>(null);
  const [q, setQ] = useState(search.q ?? "");
  const [glob, setGlob] = useState(search.glob ?? "");
  useShortcut("/", t.common.search, () => input.current?.select());
  useEffect(() => {
    if (!search.q) input.current?.focus();
  }, [search.q]);
  function submit(event: FormEvent) {
    event.preventDefault();
    go({ q: q || undefined, glob: glob.trim() || undefined });
  }
  const option = (name: "regex" | "case" | "word", label: string, inverted = false) => (
    <label className="flex items-center gap-1.5 text-sm">
      <input type="checkbox" className="accent-[var(--accent)]" checked={inverted ? !search[name] : !!search[name]} onChange={(event) => go({ q: q || undefined, [name]: event.target.checked !== inverted || undefined })} />
      {label}
    </label>
  );
  return (
    <form onSubmit={submit} className="sticky top-0 z-10 flex flex-col gap-2 bg-background py-3" role="search">
      <div className="flex gap-2">
        <input ref={input} type="search" className={classes(inputClass, "mono !h-9 flex-1")} aria-label={t.search.placeholder} placeholder={t.search.placeholder} value={q} onChange={(event) => setQ(event.target.value)} />
        <Button type="submit" look="primary" className="!h-9">{t.common.search}</Button>
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        {option("regex", t.search.regex)}
        {option("case", t.search.ignoreCase, true)}
        {option("word", t.search.wholeWord)}
        <input className={classes(inputClass, "!w-56 max-sm:!w-full")} aria-label={t.search.glob} placeholder={`${t.search.glob} ${t.search.globHint}`} value={glob} onChange={(event) => setGlob(event.target.value)} />
      </div>
    </form>
  );
}

function FileMatches({ project, file, seq }: { project: string; file: FileMatch; seq?: number }) {
  return (
    <article className="panel mb-3 overflow-hidden">
      <h3 className="border-b bg-sunken px-3 py-1.5">
        <Link className="mono hover:underline" to="/projects/$project/files/$" params={{ project, _splat: file.path }} search={{ at: seq }}>{file.path}</Link>
      </h3>
      <ul className="mono">
        {file.lines.map((line) => (
          <li key={line.number}>
            <Link to="/projects/$project/files/$" params={{ project, _splat: file.path }} search={{ at: seq, lines: String(line.number) }} className="row-hover flex gap-3 px-3">
              <span className="w-10 shrink-0 text-right text-muted tabular">{line.number}</span>
              <span className="min-w-0 truncate whitespace-pre">{marked(line.text, line.ranges)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </article>
  );
}

/** The text with what matched marked. Ranges count characters, not JavaScript's halves of them. */
export function marked(text: string, ranges: number[][] | null): React.ReactNode[] {
  const letters = [...text];
  const parts: React.ReactNode[] = [];
  let at = 0;
  for (const [start = 0, end = 0] of ranges ?? []) {
    parts.push(letters.slice(at, start).join(""));
    parts.push(<mark key={start} className="rounded-[3px] bg-waiting-soft text-waiting">{letters.slice(start, end).join("")}</mark>);
    at = end;
  }
  parts.push(letters.slice(at).join(""));
  return parts;
}
