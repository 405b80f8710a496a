// Who is on an item, so that two people in one review see each other. It is advice: it keeps nobody from deciding.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body, type ReviewDetail } from "../api/client";
import { keys, meQuery } from "../api/queries";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Button, Chip } from "../ui/basics";
import { shortName } from "../ui/format";
import { tellError } from "../ui/toasts";

export function ClaimChip({ project, detail }: { project: string; detail: ReviewDetail }) {
  const t = useText().review;
  const client = useQueryClient();
  const me = useQuery(meQuery()).data;
  const mayWrite = me?.actions.includes("write") ?? false;
  const isMine = detail.claim !== null && detail.claim.by === `${me?.kind}:${me?.principal}`;
  const path = { review_id: detail.id };
  const change = useMutation({
    mutationFn: () =>
      isMine
        ? body(api.POST("/api/v1/reviews/{review_id}/release", { params: { path }, body: { project } }))
        : body(api.POST("/api/v1/reviews/{review_id}/claim", { params: { path }, body: { project, take_over: detail.claim !== null } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.reviews(project) }),
    onError: tellError,
  });
  const label = isMine ? t.release : detail.claim ? t.takeOver : t.claim;
  useShortcut("c", label, () => change.mutate(), mayWrite && !change.isPending);
  return (
    <span className="flex flex-wrap items-center gap-2" data-testid="claim">
      {detail.claim && <Chip tone={isMine ? "accent" : "waiting"} dot>{isMine ? t.yours : t.isOnIt(shortName(detail.claim.by))}</Chip>}
      {mayWrite && <Button small look="quiet" keys="c" busy={change.isPending} onClick={() => change.mutate()}>{label}</Button>}
    </span>
  );
}
