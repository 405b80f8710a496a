// History on the left, the session on the right; below 1024 pixels the history is a sheet.
import { Outlet, useNavigate, useParams } from "@tanstack/react-router";
import { createContext, useContext, useMemo, useState } from "react";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Sheet } from "../ui/sheet";
import { History } from "./History";

const HistoryContext = createContext<() => void>(() => {});
/** Opens the history where it is not beside the page. */
export const useHistorySheet = () => useContext(HistoryContext);

export function SessionsLayout() {
  const t = useText().sessions;
  const navigate = useNavigate();
  const { session } = useParams({ strict: false });
  const [isOpen, setOpen] = useState(false);
  const open = useMemo(() => () => setOpen(true), []);
  useShortcut("n", t.new, () => void navigate({ to: "/sessions/new" }));
  return (
    <HistoryContext value={open}>
      <div className="flex min-h-0 flex-1">
        <aside aria-label={t.history} className="hidden w-64 shrink-0 flex-col border-r lg:flex"><History active={session} /></aside>
        <div className="flex min-h-0 min-w-0 flex-1 flex-col"><Outlet /></div>
      </div>
      <Sheet title={t.history} side="left" open={isOpen} onClose={() => setOpen(false)}><History active={session} onOpen={() => setOpen(false)} /></Sheet>
    </HistoryContext>
  );
}
