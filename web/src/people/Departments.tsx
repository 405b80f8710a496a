import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Button, classes, Field, inputClass } from "../ui/basics";
import { Table } from "../ui/table";
import { tell, tellError } from "../ui/toasts";
import { departmentsQuery, peopleKeys } from "./queries";

type Department = Schemas["DepartmentView"];

export function Departments() {
  const t = useText();
  const client = useQueryClient();
  const departments = useQuery(departmentsQuery()).data ?? [];
  const [values, setValues] = useState({ name: "", title: "" });
  const refresh = () => client.invalidateQueries({ queryKey: peopleKeys.departments });
  const put = (wanted: { name: string; title: string }) => body(api.POST("/api/v1/departments", { body: wanted }));
  const make = useMutation({
    mutationFn: () => put(values),
    onSuccess: async () => {
      setValues({ name: "", title: "" });
      await refresh();
    },
    onError: tellError,
  });
  const remove = useMutation({
    mutationFn: (one: Department) => body(api.DELETE("/api/v1/departments/{department}", { params: { path: { department: one.name } } })),
    onSuccess: async (_, one) => {
      await refresh();
      tell(t.people.removed(one.name), { undo: async () => { await put(one); await refresh(); } });
    },
    onError: tellError,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    make.mutate();
  }
  return (
    <section>
      <h2 className="text-lg font-semibold">{t.people.departments}</h2>
      <p className="mb-3 text-muted">{departments.length ? t.people.departmentsHint : t.people.noDepartments}</p>
      {departments.length > 0 && (
        <Table
          label={t.people.departments}
          head={[t.people.departmentName, t.people.departmentTitle, t.people.title, <span key="r" className="sr-only">{t.people.remove}</span>]}
          rows={departments.map((one) => ({ key: one.name, cells: [<span key="n" className="mono">{one.name}</span>, one.title, t.people.people(one.people), one.people === 0 && <Button key="r" small look="quiet" onClick={() => remove.mutate(one)}>{t.people.remove}</Button>] }))}
        />
      )}
      <form onSubmit={submit} className="mt-3 flex flex-wrap items-end gap-2">
        <div className="min-w-32 flex-1"><Field label={t.people.departmentName}><input required maxLength={100} pattern="[a-z0-9][a-z0-9._\-]*" className={classes(inputClass, "mono")} value={values.name} onChange={(event) => setValues({ ...values, name: event.target.value })} /></Field></div>
        <div className="min-w-32 flex-1"><Field label={t.people.departmentTitle}><input maxLength={400} className={inputClass} value={values.title} onChange={(event) => setValues({ ...values, title: event.target.value })} /></Field></div>
        <Button type="submit" busy={make.isPending} disabled={!values.name}>{t.people.newDepartment}</Button>
      </form>
    </section>
  );
}
