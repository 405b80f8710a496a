// Tells the reader in the browser's own way that something waits, once they have allowed it.
import { Bell } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useText } from "../text";
import { Button } from "../ui/basics";
import { tell } from "../ui/toasts";

export function Notifications({ count }: { count: number }) {
  const t = useText().inbox;
  const [state, setState] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  const before = useRef(count);
  useEffect(() => {
    if (count > before.current && state === "granted" && document.hidden) new Notification(t.notification(count), { tag: "inbox" });
    before.current = count;
  }, [count, state, t]);
  if (!("Notification" in window)) return null;
  if (state === "granted") return <span className="flex items-center gap-1.5 text-sm text-muted"><Bell size={14} aria-hidden />{t.notifyOn}</span>;
  const ask = () => void Notification.requestPermission().then((answer) => { setState(answer); if (answer === "denied") tell(t.notifyDenied); });
  return <Button small onClick={ask}><Bell size={13} aria-hidden />{t.notify}</Button>;
}
