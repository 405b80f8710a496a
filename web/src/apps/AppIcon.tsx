import { Avatar } from "../ui/basics";

/** An app's icon: a picture or a sign; the first letter of an app without one. */
export function AppIcon({ name, icon, size = 32 }: { name: string; icon: string; size?: number }) {
  if (/^data:image\/(png|jpeg|gif|webp);base64,/.test(icon)) return <img src={icon} alt="" width={size} height={size} className="shrink-0 rounded-md" />;
  if (icon && icon.length <= 8) return <span aria-hidden style={{ width: size, height: size, fontSize: size * 0.6 }} className="inline-flex shrink-0 items-center justify-center rounded-md bg-sunken leading-none">{icon}</span>;
  return <Avatar principal={`app:${name}`} size={size} />;
}
