import { useText } from "../text";
import { classes, Kbd } from "../ui/basics";
import { differing } from "../projects/diffRows";

type Props = { number: number; name: string; note: string; text: string | null | undefined; against: string | null; isChosen: boolean; disabled: boolean; onChoose: () => void };

export function SideCard({ number, name, note, text, against, isChosen, disabled, onChoose }: Props) {
  const t = useText();
  return (
    <button
      type="button"
      role="radio"
      aria-checked={isChosen}
      disabled={disabled && !isChosen}
      onClick={onChoose}
      className={classes("panel flex min-w-0 flex-col overflow-hidden text-left align-top", isChosen ? "!border-accent ring-2 ring-accent/40" : !disabled && "hover:border-line-strong")}
    >
      <span className="flex items-center gap-2 border-b bg-sunken px-3 py-1.5">
        <Kbd>{number}</Kbd>
        <span className="font-semibold">{name}</span>
        <span className="truncate text-sm text-muted">{note}</span>
      </span>
      <span className="mono block max-h-64 min-h-10 overflow-auto px-3 py-2 break-words whitespace-pre-wrap">
        {text === null ? <i className="text-muted">{t.review.nothingThere}</i> : text === undefined ? <i className="text-muted">{t.review.notText}</i> : against === null ? <span className="text-muted">{text}</span> : <Marked text={text} against={against} />}
      </span>
    </button>
  );
}

function Marked({ text, against }: { text: string; against: string }) {
  const [, pieces] = differing(against, text);
  return pieces.map((piece, index) => (piece.differs ? <mark key={index} className="rounded-[3px] bg-waiting-soft text-waiting">{piece.text}</mark> : <span key={index}>{piece.text}</span>));
}
