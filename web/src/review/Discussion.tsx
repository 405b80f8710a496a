import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body, type ReviewDetail } from "../api/client";
import { keys } from "../api/queries";
import { useText } from "../text";
import { Age, Button, classes, inputClass, Who } from "../ui/basics";
import { tellError } from "../ui/toasts";

export function Discussion({ project, detail }: { project: string; detail: ReviewDetail }) {
  const t = useText();
  const client = useQueryClient();
  const [text, setText] = useState("");
  const send = useMutation({
    mutationFn: () => body(api.POST("/api/v1/reviews/{review_id}/comments", { params: { path: { review_id: detail.id } }, body: { project, text } })),
    onSuccess: async () => {
      setText("");
      await client.invalidateQueries({ queryKey: keys.reviews(project) });
    },
    onError: tellError,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    send.mutate();
  }
  return (
    <section className="mt-6 max-w-2xl" aria-label={t.review.discussion}>
      <h3 className="mb-2 font-semibold">{t.review.discussion}</h3>
      <ol>
        {detail.discussion.map((comment) => (
          <li key={comment.number} className="border-b py-2">
            <div className="flex items-center gap-2"><Who principal={comment.author} /><Age at={comment.at} className="text-xs text-muted" /></div>
            <p className="mt-1 break-words whitespace-pre-wrap">{comment.text}</p>
          </li>
        ))}
      </ol>
      <form onSubmit={submit} className="mt-2 flex gap-2">
        <input className={classes(inputClass, "flex-1")} aria-label={t.review.comment} placeholder={t.review.comment} value={text} maxLength={10_000} onChange={(event) => setText(event.target.value)} />
        <Button type="submit" busy={send.isPending} disabled={!text.trim()}>{t.review.send}</Button>
      </form>
    </section>
  );
}
