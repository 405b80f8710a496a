import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, body, type Schemas } from "../api/client";
import { useText } from "../text";
import { Button, classes, Field, inputClass } from "../ui/basics";
import type { Person } from "./queries";

type Department = Schemas["DepartmentView"];

function DepartmentField({ value, departments, onChange }: { value: string; departments: Department[]; onChange: (name: string) => void }) {
  const t = useText().people;
  return (
    <Field label={t.department}>
      <select className={inputClass} value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{t.noDepartment}</option>
        {departments.map((one) => <option key={one.name} value={one.name}>{one.title || one.name}</option>)}
      </select>
    </Field>
  );
}

function Check({ label, checked, onChange }: { label: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return <label className="flex items-start gap-2"><input type="checkbox" className="mt-1 accent-[var(--accent)]" checked={checked} onChange={(event) => onChange(event.target.checked)} />{label}</label>;
}

export function NewPerson({ departments, onMade }: { departments: Department[]; onMade: (person: Person) => Promise<void> }) {
  const t = useText();
  const [values, setValues] = useState({ login_name: "", slug: "", display_name: "", email: "", department: "", service: false, member: true });
  const make = useMutation({
    mutationFn: () => body(api.POST("/api/v1/users", { body: { ...values, email: values.email || null, department: values.department || null } })),
    onSuccess: onMade,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    make.mutate();
  }
  const set = (name: "login_name" | "slug" | "display_name" | "email") => (event: { target: { value: string } }) => setValues({ ...values, [name]: event.target.value });
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 overflow-auto p-4">
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t.people.login}><input autoFocus required maxLength={200} autoComplete="off" className={inputClass} value={values.login_name} onChange={set("login_name")} /></Field>
        <Field label={t.people.displayName}><input maxLength={400} autoComplete="off" className={inputClass} value={values.display_name} onChange={set("display_name")} /></Field>
        <Field label={t.people.email}><input type="email" maxLength={320} autoComplete="off" className={inputClass} value={values.email} onChange={set("email")} /></Field>
        <DepartmentField value={values.department} departments={departments} onChange={(department) => setValues({ ...values, department })} />
      </div>
      <Field label={t.people.slug} hint={t.people.slugHint}><input maxLength={100} autoComplete="off" className={classes(inputClass, "mono")} value={values.slug} onChange={set("slug")} /></Field>
      <Check label={t.people.member} checked={values.member} onChange={(member) => setValues({ ...values, member })} />
      <Check label={t.people.service} checked={values.service} onChange={(service) => setValues({ ...values, service })} />
      {make.error && <p role="alert" className="text-refused">{make.error.message}</p>}
      <Button type="submit" look="primary" busy={make.isPending} disabled={!values.login_name.trim()} className="self-end">{t.people.new}</Button>
    </form>
  );
}

export function PersonForm({ person, departments, save }: { person: Person; departments: Department[]; save: (changes: Partial<Schemas["UserPatch"]>) => Promise<void> }) {
  const t = useText();
  const [values, setValues] = useState({ login_name: person.login_name, display_name: person.display_name, email: person.email ?? "", department: person.department ?? "" });
  const send = useMutation({ mutationFn: () => save(values) });
  function submit(event: FormEvent) {
    event.preventDefault();
    send.mutate();
  }
  const set = (name: "login_name" | "display_name" | "email") => (event: { target: { value: string } }) => setValues({ ...values, [name]: event.target.value });
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 overflow-auto p-4">
      <Field label={t.people.displayName}><input autoFocus maxLength={400} className={inputClass} value={values.display_name} onChange={set("display_name")} /></Field>
      <Field label={t.people.login}><input required maxLength={200} autoComplete="off" className={inputClass} value={values.login_name} onChange={set("login_name")} /></Field>
      <Field label={t.people.email}><input type="email" maxLength={320} className={inputClass} value={values.email} onChange={set("email")} /></Field>
      <DepartmentField value={values.department} departments={departments} onChange={(department) => setValues({ ...values, department })} />
      {send.error && <p role="alert" className="text-refused">{send.error.message}</p>}
      <Button type="submit" look="primary" busy={send.isPending} className="self-end">{t.common.save}</Button>
    </form>
  );
}
