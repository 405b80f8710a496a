// Going back to a message, and going on from one in a session of its own.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useCallback, useState } from "react";
import { api, body } from "../api/client";
import { useText } from "../text";
import { Button } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { tell, tellError } from "../ui/toasts";
import { addToDraft } from "./Composer";
import type { ChatMessage } from "./parts";
import { sessionKeys } from "./queries";

export function useForking(session: string, onRewound: () => Promise<void>): { rewind: (message: ChatMessage) => void; fork: (message: ChatMessage) => void; dialog: ReactNode } {
  const t = useText();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [asked, setAsked] = useState<ChatMessage | null>(null);
  const [files, setFiles] = useState(true);
  const rewinding = useMutation({
    mutationFn: (message: ChatMessage) => body(api.POST("/api/v1/sessions/{session}/rewind", { params: { path: { session } }, body: { message_id: message.id, files } })),
    onSuccess: async (rewound) => {
      setAsked(null);
      await client.invalidateQueries({ queryKey: sessionKeys.one(session) });
      await onRewound();
      if (rewound.prompt) addToDraft(session, rewound.prompt);
      tell(t.sessions.thread.rewound);
    },
    onError: tellError,
  });
  const forking = useMutation({
    mutationFn: (message: ChatMessage) => body(api.POST("/api/v1/sessions/{session}/fork", { params: { path: { session } }, body: { message_id: message.id } })),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: sessionKeys.all });
      await navigate({ to: "/sessions/$session", params: { session: made.id } });
      tell(t.sessions.thread.forked);
    },
    onError: tellError,
  });
  const fork = forking.mutate;
  const dialog = (
    <Dialog title={t.sessions.thread.rewindTitle} open={asked !== null} onClose={() => setAsked(null)}>
      <form className="flex flex-col gap-3 p-4" onSubmit={(event) => { event.preventDefault(); if (asked) rewinding.mutate(asked); }}>
        <p className="text-muted">{t.sessions.thread.rewindHint}</p>
        <label className="flex items-center gap-2"><input type="checkbox" className="accent-[var(--accent)]" checked={files} onChange={(event) => setFiles(event.target.checked)} />{t.sessions.thread.rewindFiles}</label>
        <Button type="submit" look="primary" className="self-end" busy={rewinding.isPending}>{t.sessions.thread.rewind}</Button>
      </form>
    </Dialog>
  );
  return { rewind: useCallback((message: ChatMessage) => setAsked(message), []), fork: useCallback((message: ChatMessage) => fork(message), [fork]), dialog };
}
