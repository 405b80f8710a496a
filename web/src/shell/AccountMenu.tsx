// Who you are, theme, language, and the way out.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Check, CircleUserRound } from "lucide-react";
import { DropdownMenu as Menu } from "radix-ui";
import type { ReactNode } from "react";
import { meQuery } from "../api/queries";
import { currentLanguage, LANGUAGES, setLanguage, useText } from "../text";
import { IconButton } from "../ui/basics";
import { setTheme, type Theme, useTheme } from "./theme";

const item = "flex h-8 cursor-default items-center gap-2 rounded-md px-2 text-sm outline-none data-[highlighted]:bg-hover";

export function AccountMenu() {
  const t = useText();
  const theme = useTheme();
  const navigate = useNavigate();
  const me = useQuery(meQuery()).data;
  const themes: [Theme, string][] = [["system", t.theme.system], ["light", t.theme.light], ["dark", t.theme.dark]];
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <IconButton label={t.nav.menu}><CircleUserRound size={18} strokeWidth={1.5} /></IconButton>
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content side="right" align="end" collisionPadding={8} className="z-50 w-56 animate-appear rounded-lg border bg-panel p-1 shadow-float">
          <Menu.Label className="px-2 py-1.5">
            <div className="truncate font-medium">{me?.principal}</div>
            <div className="text-xs text-muted">{me?.actions.join(", ")}</div>
          </Menu.Label>
          <Menu.Separator className="my-1 h-px bg-line" />
          <Menu.Label className="px-2 pt-1 text-xs text-muted">{t.theme.title}</Menu.Label>
          <Menu.RadioGroup value={theme} onValueChange={(value) => setTheme(value as Theme)}>
            {themes.map(([value, label]) => <Choice key={value} value={value}>{label}</Choice>)}
          </Menu.RadioGroup>
          <Menu.Label className="px-2 pt-2 text-xs text-muted">{t.language.title}</Menu.Label>
          <Menu.RadioGroup
            value={currentLanguage()}
            onValueChange={(value) => {
              localStorage.setItem("language", value);
              void setLanguage(value as "en" | "zh");
            }}
          >
            {LANGUAGES.map(({ id, name }) => <Choice key={id} value={id}>{name}</Choice>)}
          </Menu.RadioGroup>
          <Menu.Separator className="my-1 h-px bg-line" />
          <Menu.Item className={item} onSelect={() => void navigate({ to: "/account" })}>{t.account.menu}</Menu.Item>
          <Menu.Item className={item} onSelect={() => void logOut()}>{t.login.logout}</Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

export async function logOut(everywhere = false) {
  await fetch("/logout", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ everywhere }) });
  window.location.assign("/");
}

function Choice({ value, children }: { value: string; children: ReactNode }) {
  return (
    <Menu.RadioItem value={value} className={item} onSelect={(event) => event.preventDefault()}>
      <span className="inline-flex w-4"><Menu.ItemIndicator><Check size={14} /></Menu.ItemIndicator></span>
      {children}
    </Menu.RadioItem>
  );
}
