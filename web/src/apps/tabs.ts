export const APP_TABS = ["overview", "config", "knowledge", "manifests", "secrets", "visibility"] as const;
export type AppTab = (typeof APP_TABS)[number];
