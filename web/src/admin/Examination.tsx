// What `contextbase doctor` finds on the server's machine, with what to do about it: the worst first.
import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Age, Button, Chip, Problem, Skeleton, type Tone } from "../ui/basics";

type Finding = Schemas["FindingView"];
const ANSWERS: { answer: Finding["answer"]; tone: Tone }[] = [
  { answer: "broken", tone: "refused" },
  { answer: "no", tone: "waiting" },
  { answer: "yes", tone: "written" },
];

export function Examination() {
  const t = useText();
  const words = t.admin.doctor;
  // It tries things out on the machine, so it is asked for by hand and not again and again.
  const found = useQuery({ queryKey: ["doctor"], staleTime: 60_000, retry: false, refetchOnWindowFocus: false, queryFn: ({ signal }) => body(api.GET("/api/v1/system/doctor", { signal })) });
  return (
    <section aria-label={words.title} data-testid="doctor" aria-busy={found.isFetching}>
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="text-lg font-semibold">{words.title}</h2>
        {found.data && <p className="text-sm text-muted"><span className="mono">{found.data.machine}</span> · {words.checked} <Age at={found.data.checked_at} /></p>}
        <Button small className="ml-auto" busy={found.isFetching} onClick={() => void found.refetch()}>{!found.isFetching && <RefreshCw size={13} aria-hidden />}{words.again}</Button>
      </div>
      {found.isPending && <Skeleton lines={6} className="panel" />}
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.data && !found.error && (
        <div className="flex flex-col gap-3">
          {ANSWERS.map(({ answer, tone }) => <Group key={answer} findings={found.data.findings.filter((one) => one.answer === answer)} title={words.groups[answer]} tone={tone} />)}
        </div>
      )}
    </section>
  );
}

function Group({ findings, title, tone }: { findings: Finding[]; title: string; tone: Tone }) {
  const words = useText().admin.doctor;
  if (findings.length === 0) return null;
  return (
    <div className="panel">
      <h3 className="flex items-center gap-2 border-b px-3 py-2 text-sm font-medium"><Chip tone={tone} dot>{findings.length}</Chip>{title}</h3>
      <dl>
        {findings.map((one) => (
          <div key={one.name} className="grid gap-x-4 border-b px-3 py-2 last:border-b-0 sm:grid-cols-[10rem_1fr]">
            <dt className="font-medium">{words.names[one.name] ?? one.name}</dt>
            <dd className="min-w-0 break-words text-muted">
              {one.detail}
              {one.advice && <p className="mt-1 text-text"><span className="font-medium">{words.advice}</span> {one.advice}</p>}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
