// Accounts and departments: who may log in, invitations, new passwords, and who is out.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { MoreHorizontal } from "lucide-react";
import { DropdownMenu as Menu } from "radix-ui";
import { useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useShortcut } from "../shell/keyboard";
import { useText } from "../text";
import { Age, Avatar, Button, Chip, classes, Empty, IconButton, inputClass, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { formatMoment } from "../ui/format";
import { Table } from "../ui/table";
import { tell, tellError } from "../ui/toasts";
import { Departments } from "./Departments";
import { NewPerson, PersonForm } from "./PersonForms";
import { departmentsQuery, peopleKeys, peopleQuery, type Person } from "./queries";

const route = getRouteApi("/admin/people");
const item = "flex h-8 cursor-default items-center gap-2 rounded-md px-2 text-sm outline-none data-[highlighted]:bg-hover";
type Link = { person: Person; link: Schemas["PasswordLinkView"] };

export function PeoplePage() {
  const t = useText();
  const navigate = useNavigate();
  const client = useQueryClient();
  const search = route.useSearch();
  const people = useInfiniteQuery(peopleQuery(search.department));
  const departments = useQuery(departmentsQuery()).data ?? [];
  const [changing, setChanging] = useState<Person | null>(null);
  const [resetting, setResetting] = useState<Person | null>(null);
  const [made, setMade] = useState<Link | null>(null);
  const go = (changes: Partial<typeof search>) => void navigate({ to: "/admin/people", search: { ...search, ...changes }, replace: true });
  const refresh = () => Promise.all([client.invalidateQueries({ queryKey: peopleKeys.people }), client.invalidateQueries({ queryKey: peopleKeys.departments })]);
  const change = async (slug: string, changes: Partial<Schemas["UserPatch"]>) => {
    await body(api.PATCH("/api/v1/users/{user}", { params: { path: { user: slug } }, body: changes as Schemas["UserPatch"] }));
    await refresh();
  };
  const disable = useMutation({
    mutationFn: (person: Person) => change(person.slug, { disabled: !person.disabled }),
    onSuccess: (_, person) => tell((person.disabled ? t.people.enabledToast : t.people.disabledToast)(person.display_name || person.slug), { undo: () => change(person.slug, { disabled: person.disabled }) }),
    onError: tellError,
  });
  const link = useMutation({
    mutationFn: ({ person, reset }: { person: Person; reset: boolean }) =>
      body(api.POST(reset ? "/api/v1/users/{user}/password-reset" : "/api/v1/users/{user}/invitation", { params: { path: { user: person.slug } } })),
    onSuccess: (found, { person }) => {
      setResetting(null);
      setMade({ person, link: found });
    },
    onError: tellError,
  });
  const logout = useMutation({
    mutationFn: (person: Person) => body(api.POST("/api/v1/users/{user}/logout", { params: { path: { user: person.slug } } })),
    onSuccess: (done) => tell(t.people.loggedOut(done.ended)),
    onError: tellError,
  });
  useShortcut("n", t.people.new, () => go({ new: true }));
  const all = people.data?.pages.flatMap((page) => page.users) ?? [];
  const actions = (person: Person) =>
    person.is_owner ? null : (
      <Menu.Root modal={false}>
        <Menu.Trigger asChild><IconButton label={`${t.people.actions}: ${person.display_name || person.slug}`}><MoreHorizontal size={16} strokeWidth={1.5} /></IconButton></Menu.Trigger>
        <Menu.Portal>
          <Menu.Content align="end" collisionPadding={8} className="z-50 min-w-48 animate-appear rounded-lg border bg-panel p-1 shadow-float">
            <Menu.Item className={item} onSelect={() => setChanging(person)}>{t.people.change}</Menu.Item>
            {!person.service && !person.disabled && <Menu.Item className={item} onSelect={() => link.mutate({ person, reset: false })}>{t.people.invite}</Menu.Item>}
            {!person.service && !person.disabled && <Menu.Item className={item} onSelect={() => setResetting(person)}>{t.people.reset}…</Menu.Item>}
            {!person.service && <Menu.Item className={item} onSelect={() => logout.mutate(person)}>{t.people.logout}</Menu.Item>}
            <Menu.Item className={classes(item, !person.disabled && "text-refused")} onSelect={() => disable.mutate(person)}>{person.disabled ? t.people.enable : t.people.disable}</Menu.Item>
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
    );
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-6 p-4">
      <section>
        <div className="mb-3 flex flex-wrap items-center gap-3">
          <p className="min-w-48 flex-1 text-muted">{t.people.intro}</p>
          {departments.length > 0 && (
            <select aria-label={t.people.department} className={`${inputClass} !w-auto`} value={search.department ?? ""} onChange={(event) => go({ department: event.target.value || undefined })}>
              <option value="">{t.people.all}</option>
              {departments.map((one) => <option key={one.name} value={one.name}>{one.title || one.name}</option>)}
            </select>
          )}
          <Button look="primary" keys="n" onClick={() => go({ new: true })}>{t.people.new}</Button>
        </div>
        {people.isPending && <Skeleton lines={6} />}
        {people.error && <Problem error={people.error} retry={() => void people.refetch()} />}
        {people.isSuccess && all.length === 0 && <Empty title={t.people.empty} tall={false}>{t.people.emptyHint}</Empty>}
        {all.length > 0 && (
          <Table
            label={t.people.title}
            head={[t.people.person, t.people.login, t.people.department, t.people.state, t.people.since, <span key="a" className="sr-only">{t.people.actions}</span>]}
            rows={all.map((person) => ({
              key: person.slug,
              cells: [
                <span key="p" className="flex items-center gap-2"><Avatar principal={`user:${person.slug}`} size={24} /><span className="min-w-0"><span className="block font-medium">{person.display_name || person.slug}</span><span className="block text-xs text-muted">{person.email || person.slug}</span></span></span>,
                <span key="l" className="mono">{person.login_name}</span>,
                departments.find((one) => one.name === person.department)?.title || person.department || <span key="d" className="text-muted">{t.people.noDepartment}</span>,
                <span key="s" className="flex flex-wrap gap-1"><Chip tone={person.disabled ? "refused" : "written"} dot>{person.disabled ? t.people.disabled : t.people.active}</Chip>{person.is_owner && <Chip>{t.people.owner}</Chip>}{person.service && <Chip>{t.people.serviceChip}</Chip>}</span>,
                <Age key="c" at={person.created_at} />,
                <span key="a">{actions(person)}</span>,
              ],
            }))}
          />
        )}
        {people.hasNextPage && <Button className="mt-3" busy={people.isFetchingNextPage} onClick={() => void people.fetchNextPage()}>{t.common.more}</Button>}
      </section>
      <Departments />
      <Dialog title={t.people.new} open={search.new ?? false} onClose={() => go({ new: undefined })}>
        <NewPerson departments={departments} onMade={async (person) => { await refresh(); go({ new: undefined }); if (!person.service) link.mutate({ person, reset: false }); }} />
      </Dialog>
      <Dialog title={changing?.display_name || changing?.slug || ""} open={changing !== null} onClose={() => setChanging(null)}>
        {changing && <PersonForm person={changing} departments={departments} save={async (changes) => { await change(changing.slug, changes); setChanging(null); tell(t.people.saved); }} />}
      </Dialog>
      <Dialog title={t.people.resetTitle(resetting?.display_name || resetting?.slug || "")} open={resetting !== null} onClose={() => setResetting(null)}>
        <div className="flex flex-col gap-4 p-4">
          <p className="text-muted">{t.people.resetHint}</p>
          <Button look="danger" className="self-end" busy={link.isPending} onClick={() => resetting && link.mutate({ person: resetting, reset: true })}>{t.people.reset}</Button>
        </div>
      </Dialog>
      <Dialog title={t.people.linkTitle(made?.person.display_name || made?.person.slug || "")} open={made !== null} onClose={() => setMade(null)}>
        {made && (
          <div className="flex flex-col gap-3 p-4">
            <p>{t.people.linkHint}</p>
            <code className="mono rounded-md border bg-sunken p-3 break-all" data-testid="link">{made.link.url}</code>
            <p className="text-sm text-muted">{t.people.until} {formatMoment(made.link.expires_at)}</p>
            <Button look="primary" className="self-end" onClick={() => void navigator.clipboard.writeText(made.link.url).then(() => tell(t.common.copied), tellError)}>{t.common.copy}</Button>
          </div>
        )}
      </Dialog>
    </div>
  );
}
