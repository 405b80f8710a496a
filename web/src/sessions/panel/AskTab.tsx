import { useText } from "../../text";
import { Empty } from "../../ui/basics";
import { isPending, type Question } from "../parts";
import { QuestionCard } from "../QuestionCard";

export function AskTab({ questions }: { questions: Question[] }) {
  const t = useText().sessions.question;
  const pending = questions.filter(isPending);
  const answered = questions.filter((question) => !isPending(question)).reverse();
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-3 overflow-auto p-4">
      {pending.map((question) => <QuestionCard key={question.question_id} question={question} />)}
      {pending.length === 0 && <Empty title={t.none} tall={false}>{t.noneHint}</Empty>}
      {answered.length > 0 && <h2 className="text-xs text-muted">{t.history}</h2>}
      {answered.map((question) => <QuestionCard key={question.question_id} question={question} />)}
    </div>
  );
}
