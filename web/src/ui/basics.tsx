// The small parts every page is made of.
import { Link } from "@tanstack/react-router";
import { LoaderCircle } from "lucide-react";
import { type ComponentProps, type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { useText } from "../text";
import { formatAge, formatMoment, shortName } from "./format";

export const classes = (...names: (string | false | null | undefined)[]) => names.filter(Boolean).join(" ");

type Look = "primary" | "plain" | "quiet" | "danger";
const LOOKS: Record<Look, string> = {
  primary: "bg-text text-background border-text hover:opacity-90",
  plain: "bg-panel border-line-strong hover:bg-hover",
  quiet: "border-transparent hover:bg-hover",
  danger: "bg-panel border-line-strong text-refused hover:bg-refused-soft",
};

export function buttonClass(look: Look = "plain", small = false): string {
  return classes(
    "inline-flex items-center justify-center gap-1.5 rounded-md border font-medium whitespace-nowrap transition-colors",
    "disabled:opacity-50 disabled:pointer-events-none",
    small ? "h-7 px-2 text-xs" : "h-8 px-3 text-sm",
    LOOKS[look],
  );
}

export function Button({
  look = "plain",
  small,
  busy,
  keys,
  children,
  className,
  ...rest
}: ComponentProps<"button"> & { look?: Look; small?: boolean; busy?: boolean; keys?: string }) {
  return (
    <button type="button" {...rest} disabled={rest.disabled || busy} className={classes(buttonClass(look, small), className)}>
      {busy && <LoaderCircle size={14} className="animate-spin" aria-hidden />}
      {children}
      {keys && <Kbd inverse={look === "primary"}>{keys}</Kbd>}
    </button>
  );
}

export function IconButton({ label, children, className, ...rest }: ComponentProps<"button"> & { label: string }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={classes(
        "inline-flex size-8 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover hover:text-text disabled:opacity-40",
        className,
      )}
    >
      {children}
    </button>
  );
}

export function Kbd({ children, inverse }: { children: ReactNode; inverse?: boolean }) {
  return (
    <kbd
      aria-hidden
      className={classes(
        "inline-flex h-[18px] min-w-[18px] items-center justify-center rounded border px-1 font-sans text-[11px] leading-none",
        inverse ? "border-current opacity-80" : "border-line-strong text-muted",
      )}
    >
      {children}
    </kbd>
  );
}

export type Tone = "plain" | "accent" | "written" | "merged" | "waiting" | "refused";
const TONES: Record<Tone, string> = {
  plain: "bg-sunken text-muted",
  accent: "bg-accent-soft text-accent",
  written: "bg-written-soft text-written",
  merged: "bg-merged-soft text-merged",
  waiting: "bg-waiting-soft text-waiting",
  refused: "bg-refused-soft text-refused",
};
const OUTCOME_TONES: Record<string, Tone> = {
  written: "written", added: "written", changed: "accent", renamed: "merged", merged: "merged", in_review: "waiting",
  superseded: "waiting", refused: "refused", deleted: "refused", removed: "refused", unchanged: "plain",
};

export function Chip({ tone = "plain", dot, children, title }: { tone?: Tone; dot?: boolean; children: ReactNode; title?: string }) {
  return (
    <span title={title} className={classes("inline-flex items-center gap-1.5 rounded-full px-2 py-0.5 text-xs whitespace-nowrap tabular", TONES[tone])}>
      {dot && <span className="size-1.5 rounded-full bg-current" aria-hidden />}
      {children}
    </span>
  );
}

export function Outcome({ what }: { what: string }) {
  const t = useText().outcome as Record<string, unknown>;
  return <Chip tone={OUTCOME_TONES[what] ?? "plain"}>{String(t[what] ?? what)}</Chip>;
}

/** How old something is; it grows older by itself. */
export function Age({ at, className }: { at: string; className?: string }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 15_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={at} title={formatMoment(at)} className={className}>
      {formatAge(at)}
    </time>
  );
}

const HUES = ["bg-[#5a3fd0]", "bg-[#1b6e45]", "bg-[#2852b8]", "bg-[#8a5200]", "bg-[#a03269]", "bg-[#0f6b75]"];

export function Avatar({ principal, size = 20 }: { principal: string; size?: number }) {
  const name = principal.slice(principal.indexOf(":") + 1) || "?";
  let sum = 0;
  for (const letter of principal) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  return (
    <span
      aria-hidden
      style={{ width: size, height: size }}
      className={classes("inline-flex shrink-0 items-center justify-center rounded-md text-[11px] font-semibold text-white", HUES[sum % HUES.length])}
    >
      {[...name][0]?.toUpperCase()}
    </span>
  );
}

export function Who({ principal }: { principal: string }) {
  return (
    <span className="inline-flex min-w-0 items-center gap-2">
      <Avatar principal={principal} />
      <span className="truncate font-medium">{shortName(principal)}</span>
    </span>
  );
}

export function Skeleton({ lines = 3, className }: { lines?: number; className?: string }) {
  const t = useText();
  return (
    <div role="status" aria-label={t.common.loading} className={classes("flex flex-col gap-3 p-4", className)}>
      {Array.from({ length: lines }, (_, i) => (
        <div key={i} className={classes("skeleton h-4", ["w-2/3", "w-5/6", "w-1/2", "w-3/4"][i % 4])} />
      ))}
    </div>
  );
}

export function Empty({ title, children, action, tall = true }: { title: string; children?: ReactNode; action?: ReactNode; tall?: boolean }) {
  return (
    <div className={classes("flex flex-col items-start gap-2 px-6", tall ? "py-10" : "py-4")}>
      <h2 className="text-lg font-semibold">{title}</h2>
      {children && <div className="max-w-prose text-muted">{children}</div>}
      {action && <div className="mt-2 flex flex-wrap gap-2">{action}</div>}
    </div>
  );
}

export function Command({ children }: { children: string }) {
  return <code className="mono mt-2 block w-fit max-w-full overflow-x-auto rounded-md border bg-sunken px-3 py-2 text-text" tabIndex={0}>{children}</code>;
}

/** What went wrong, in words, with what to do. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const t = useText();
  const known = error instanceof ApiError ? error : null;
  const title =
    known?.status === 404 ? t.errors.notFound
    : known?.status === 403 ? t.errors.forbidden
    : known?.status === 410 ? t.errors.purged
    : t.errors.title;
  const detail =
    known?.status === 404 ? t.errors.notFoundHint
    : known?.code === "offline" ? t.live.offline
    : known?.retryAfter ? t.errors.busy(known.retryAfter)
    : error instanceof Error ? error.message : String(error);
  return (
    <div role="alert">
      <Empty
        title={title}
        action={
          <>
            {retry && <Button onClick={retry}>{t.common.retry}</Button>}
            <Link to="/projects" className={buttonClass("quiet")}>{t.nav.projects}</Link>
          </>
        }
      >
        {detail}
        {known && known.status !== 404 && known.code !== "offline" && <span className="mono ml-2 text-xs">{known.code}</span>}
      </Empty>
    </div>
  );
}

export function PageHeader({ title, chips, children }: { title: ReactNode; chips?: ReactNode; children?: ReactNode }) {
  return (
    <header className="flex min-h-12 shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-b px-4 py-2">
      <h1 className="min-w-0 truncate text-base font-semibold">{title}</h1>
      {chips}
      <div className="ml-auto flex items-center gap-2">{children}</div>
    </header>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    <label className="flex flex-col gap-1">
      <span className="text-sm font-medium">{label}</span>
      {children}
      {hint && <span className="text-xs text-muted">{hint}</span>}
    </label>
  );
}

export const inputClass =
  "h-8 w-full min-w-0 rounded-md border border-line-strong bg-panel px-2.5 text-sm placeholder:text-muted focus:border-accent focus:outline-none focus-visible:ring-2 focus-visible:ring-accent/40";
