// What the pages of apps ask for.
import { queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "../api/client";

export type App = Schemas["AppView"];
export type StoreEntry = Schemas["StoreEntryView"];
export type Layer = "app" | "project" | "user";
export const LAYERS: Layer[] = ["app", "project", "user"];

export const appKeys = { store: ["store"] as const, one: (app: string) => ["app", app] as const };

export const storeQuery = () =>
  queryOptions({ queryKey: appKeys.store, queryFn: async ({ signal }) => (await body(api.GET("/api/v1/apps/store", { signal }))).apps });

export const appQuery = (app: string) =>
  queryOptions({ queryKey: appKeys.one(app), queryFn: ({ signal }) => body(api.GET("/api/v1/apps/{app}", { params: { path: { app } }, signal })) });

export const appProjectsQuery = (app: string) =>
  queryOptions({ queryKey: [...appKeys.one(app), "projects"], queryFn: async ({ signal }) => (await body(api.GET("/api/v1/apps/{app}/projects", { params: { path: { app } }, signal }))).projects });

export const effectiveQuery = (app: string, project: string | undefined) =>
  queryOptions({
    queryKey: [...appKeys.one(app), "effective", project ?? ""],
    queryFn: ({ signal }) => body(api.GET("/api/v1/apps/{app}/effective-config", { params: { path: { app }, query: { app_project: project } }, signal })),
  });

export const layerQuery = (app: string, layer: Layer, project: string | undefined) =>
  queryOptions({
    queryKey: [...appKeys.one(app), "layer", layer, project ?? ""],
    queryFn: async ({ signal }) => (await body(api.GET("/api/v1/apps/{app}/configs/{layer}", { params: { path: { app, layer }, query: { app_project: project, limit: 20 } }, signal }))).versions,
  });

export const knowledgeQuery = (app: string, project: string | undefined) =>
  queryOptions({
    queryKey: [...appKeys.one(app), "knowledge", project ?? ""],
    queryFn: async ({ signal }) => (await body(api.GET("/api/v1/apps/{app}/knowledge-bases", { params: { path: { app }, query: { app_project: project } }, signal }))).knowledge_bases,
  });

export const manifestsQuery = (app: string) =>
  queryOptions({ queryKey: [...appKeys.one(app), "manifests"], queryFn: async ({ signal }) => (await body(api.GET("/api/v1/apps/{app}/manifests", { params: { path: { app } }, signal }))).manifests });

export const secretsQuery = (app: string, layer: Layer, project: string | undefined) =>
  queryOptions({
    queryKey: [...appKeys.one(app), "secrets", layer, project ?? ""],
    queryFn: async ({ signal }) => (await body(api.GET("/api/v1/apps/{app}/secrets/{layer}", { params: { path: { app, layer }, query: { app_project: project } }, signal }))).secrets,
  });
