export const PANEL_TABS = ["agent", "todo", "changes", "files", "preview", "terminal", "ask"] as const;
export type PanelTab = (typeof PANEL_TABS)[number];
