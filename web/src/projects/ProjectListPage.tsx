import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, body } from "../api/client";
import { keys, projectsQuery } from "../api/queries";
import { useShortcut } from "../shell/keyboard";
import { matches } from "../shell/matching";
import { useText } from "../text";
import { Age, Button, Chip, classes, Command, Empty, Field, inputClass, PageHeader, Problem, Skeleton } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { useListKeys } from "../ui/list";
import { tell } from "../ui/toasts";

const route = getRouteApi("/projects");

export function ProjectListPage() {
  const t = useText();
  const navigate = useNavigate();
  const search = route.useSearch();
  const projects = useQuery(projectsQuery());
  const isNew = search.new ?? false;
  const found = (projects.data ?? []).filter((one) => matches(`${one.name} ${one.description}`, search.q ?? ""));
  const list = useListKeys(found.length, (index) => {
    const one = found[index];
    if (one) void navigate({ to: "/projects/$project", params: { project: one.name } });
  });
  const setNew = (open: boolean) => void navigate({ to: "/projects", search: { ...search, new: open || undefined }, replace: true });
  useShortcut("n", t.projects.new, () => setNew(true));
  return (
    <>
      <PageHeader title={t.projects.title} chips={projects.data && <Chip>{t.projects.count(projects.data.length)}</Chip>}>
        <Button look="primary" keys="n" onClick={() => setNew(true)}>{t.projects.new}</Button>
      </PageHeader>
      <div className="min-h-0 flex-1 overflow-auto">
        {projects.isPending && <Skeleton lines={6} />}
        {projects.error && <Problem error={projects.error} retry={() => void projects.refetch()} />}
        {projects.data?.length === 0 && (
          <Empty title={t.projects.empty} action={<Button look="primary" onClick={() => setNew(true)}>{t.projects.new}</Button>}>
            {t.projects.emptyHint}
            <Command>contextbase import my-project ./folder</Command>
          </Empty>
        )}
        {!!projects.data?.length && (
          <div className="mx-auto max-w-4xl p-4">
            <input
              className={inputClass}
              type="search"
              aria-label={t.projects.filter}
              placeholder={t.projects.filter}
              value={search.q ?? ""}
              onChange={(event) => void navigate({ to: "/projects", search: { ...search, q: event.target.value || undefined }, replace: true })}
            />
            <ul className="mt-3 flex flex-col" {...list.props}>
              {found.map((project, index) => (
                <li key={project.id}>
                  <Link
                    to="/projects/$project"
                    params={{ project: project.name }}
                    className={classes("flex min-h-14 items-center gap-3 rounded-md border-b px-3 py-2", index === list.active ? "bg-hover" : "row-hover")}
                  >
                    <span className="min-w-0 flex-1">
                      <span className="block truncate font-medium">{project.name}</span>
                      {project.description && <span className="block truncate text-sm text-muted">{project.description}</span>}
                    </span>
                    <span className="text-sm text-muted tabular">{project.head ? t.projects.commits(project.head) : t.projects.noCommits}</span>
                    <Age at={project.created_at} className="hidden w-20 text-right text-sm text-muted sm:block" />
                  </Link>
                </li>
              ))}
            </ul>
            {found.length === 0 && <p className="p-3 text-muted">{t.projects.noneMatch}</p>}
          </div>
        )}
      </div>
      <Dialog title={t.projects.new} open={isNew} onClose={() => setNew(false)}>
        <NewProject />
      </Dialog>
    </>
  );
}

function NewProject() {
  const t = useText();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useMutation({
    mutationFn: () => body(api.POST("/api/v1/projects", { body: { name, description } })),
    onSuccess: async (project) => {
      await client.invalidateQueries({ queryKey: keys.projects });
      tell(t.projects.created(project.name));
      await navigate({ to: "/projects/$project", params: { project: project.name } });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    create.mutate();
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 p-4">
      <Field label={t.projects.name} hint={t.projects.nameHint}>
        <input autoFocus required maxLength={100} className={inputClass} value={name} onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field label={t.projects.description}>
        <input maxLength={4096} className={inputClass} value={description} onChange={(event) => setDescription(event.target.value)} />
      </Field>
      {create.error && <p role="alert" className="text-refused">{create.error.message}</p>}
      <Button type="submit" look="primary" busy={create.isPending} disabled={!name} className="self-end">{t.common.create}</Button>
    </form>
  );
}
