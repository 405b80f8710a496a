// What the pages of people ask for.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "../api/client";

export type Person = Schemas["UserView"];

export const peopleKeys = { people: ["people"] as const, departments: ["departments"] as const, bindings: ["bindings"] as const };

export const peopleQuery = (department?: string) =>
  infiniteQueryOptions({
    queryKey: [...peopleKeys.people, department ?? ""],
    initialPageParam: "",
    queryFn: ({ signal, pageParam }) => body(api.GET("/api/v1/users", { params: { query: { after: pageParam, department, limit: 100 } }, signal })),
    getNextPageParam: (last) => last.next_after ?? undefined,
  });

export const departmentsQuery = () =>
  queryOptions({ queryKey: peopleKeys.departments, queryFn: async ({ signal }) => (await body(api.GET("/api/v1/departments", { signal }))).departments });

export const bindingsQuery = (user?: string) =>
  infiniteQueryOptions({
    queryKey: [...peopleKeys.bindings, user ?? ""],
    initialPageParam: 0,
    queryFn: ({ signal, pageParam }) => body(api.GET("/api/v1/roles/bindings", { params: { query: { user, offset: pageParam, limit: 100 } }, signal })),
    getNextPageParam: (last) => last.next_offset ?? undefined,
  });

export const rolesQuery = () => queryOptions({ queryKey: ["roles"], staleTime: Infinity, queryFn: async ({ signal }) => (await body(api.GET("/api/v1/roles", { signal }))).roles });
