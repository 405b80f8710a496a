// What the pages of apps, people, usage and the reader's own account say.
const s = (count: number, one: string, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export const apps = {
  title: "Store", count: (n: number) => s(n, "app"), filter: "Filter apps", noneMatch: "No app has that in its name.",
  empty: "No apps for you yet", emptyHint: "An app is a kind of session that somebody prepared, with files, knowledge and settings. Whoever runs one shows it to you here.",
  emptyAdmin: "An app is a kind of session that you prepare for others: with files to begin with, knowledge to look up, and settings for the agent. Make one, or start from the example:",
  new: "New app", name: "Name", nameHint: "a–z, digits and . _ - ; it never changes.", appTitle: "Title", description: "What is it for?", icon: "Icon", iconHint: "One sign, or a data:image/png address.",
  created: (name: string) => `App ${name} was registered.`, start: "Start a session", canUse: "You may use it", canNotUse: "You may not use it", seen: "Shown to you because", used: "Use", open: "Open the app",
  enabled: "enabled", disabled: "disabled", enable: "Enable", disable: "Disable", wasDisabled: (name: string) => `${name} is disabled: nobody can start a session of it.`, wasEnabled: (name: string) => `${name} is enabled.`,
  owner: "Owner", tabs: "Parts of the app", overview: "Overview", config: "Configuration", knowledge: "Knowledge", manifests: "Manifests", secrets: "Secrets", visibility: "Who sees it",
  project: "Project of the app", defaultProject: "default", tree: "Its files", registered: "Registered", changed: "Changed", edit: "Describe it",
  saved: "Saved.",
  layers: { app: "app", project: "project", user: "yours", run: "run" } as Record<string, string>,
  effective: "What holds for you", effectiveHint: "Later layers override earlier ones: the app, its project, your own. Each value says which layer it is from.",
  noConfig: "Nothing is configured: the server's defaults hold.", value: "Value", setting: "Setting", from: "From", layer: "Layer", version: (n: number) => `version ${n}`, unset: "nothing set", editLayer: (layer: string) => `Edit: ${layer}`,
  theRest: "Everything else, as JSON", theRestHint: "mcp_servers, skills, commands, limits, budgets, timeouts, environment, workspace_kind", inherit: "as the layer before", notJson: "This is not a JSON object.",
  moved: "Somebody else changed this layer meanwhile. Close this, look at it, and edit again.",
  settings: { provider: "Agent program", model: "Model", profile: "How much it does by itself", landing: "Its changes", system_prompt: "System prompt" } as Record<string, string>,
  sealed: "sealed", missing: "not stored yet", history: "Versions", by: "by",
  kbNone: "No knowledge bases", kbNoneHint: "A knowledge base is a folder of the app's tree that agents read at .kb/.", kbNew: "New knowledge base", tags: "Tags", tagsHint: "Separated by spaces.", allTags: "All tags", prefix: "Files at", remove: "Remove",
  kbRemoved: (name: string) => `${name} is off the list; its files stay.`, kbSaved: (name: string) => `${name} was saved.`,
  manifestsNone: "No manifests", manifestsNoneHint: "A manifest says what a session's folder is composed of. Publish one from a terminal:", number: "#", published: "Published", snapshot: "Files as of", latest: "latest", show: "Show",
  compare: "Compare", compareWith: (a: string, b: string) => `${a} → ${b}`, same: "These two are the same but for the version.", field: "Field", old: "Before", newValue: "After", nothing: "nothing",
  secretsNone: "No secrets in this layer", secretsHint: "Stored sealed, and never shown again. A configuration names a secret; its value reaches the sandbox alone.", secretNew: "Store a secret", secretValue: "Value", secretSaved: (name: string) => `${name} is stored, sealed.`, secretRemoved: (name: string) => `${name} is gone.`, secretName: "Name",
  visibilityHint: "Any of these is enough to see the app. Without any, administrators alone see it. To use it, somebody also needs the right use_app.", departments: "Departments", roles: "Roles", members: "People", onePerLine: "One per line.", manageOnly: "Only who manages the app sees this.",
  appSession: "App",
};

export const people = {
  title: "People", roles: "Roles", usage: "Usage", intro: "Who may log in. Nobody but you needs an account while you work alone on this machine.", new: "Invite somebody", empty: "Nobody but you", emptyHint: "Invite people when others work on this server, too.",
  person: "Person", login: "Login name", slug: "Name in paths", slugHint: "Never changes; empty: from the login name.", displayName: "Display name", email: "E-mail", department: "Department", noDepartment: "none", service: "A service account: it has tokens and never logs in", member: "May use every app that is shown to them",
  state: "State", active: "active", disabled: "disabled", serviceChip: "service", owner: "owner", since: "Since",
  invite: "Invitation link", reset: "Reset password", disable: "Disable", enable: "Enable", logout: "Log out everywhere", change: "Change", actions: "What to do", saved: "Saved.",
  disabledToast: (who: string) => `${who} is disabled: logins, tokens and sessions end within a second.`, enabledToast: (who: string) => `${who} may come in again.`, loggedOut: (n: number) => `${s(n, "browser")} logged out.`,
  linkTitle: (who: string) => `A link for ${who}`, linkHint: "It works once. Send it to the person; it is not shown again.", until: "Good until", resetTitle: (who: string) => `Reset the password of ${who}?`, resetHint: "The old password stops working, and every browser is logged out.",
  departments: "Departments", departmentsHint: "Apps can be shown to a department.", newDepartment: "New department", departmentName: "Name", departmentTitle: "Title", people: (n: number) => s(n, "person", "people"), removed: (name: string) => `Department ${name} was removed.`, remove: "Remove", all: "All departments", noDepartments: "No departments yet.",
  bindings: "Who has which role", bindingsHint: "A role holds in a scope: platform, app:NAME, project:NAME, user:NAME or department:NAME.", role: "Role", scope: "Scope", grant: "Give the role", granted: "Given by", revoke: "Take away", noBindings: "Nobody has a role yet.", grantedToast: (who: string, role: string) => `${who} has the role ${role}.`, revokedToast: (who: string, role: string) => `${who} no longer has the role ${role}.`, already: "That was so already.",
  explain: "May somebody do this?", explainIt: "Explain", explainHint: "The answer names the role that decides it. A token may allow less.", action: "Action", allowed: "allowed", denied: "not allowed", gives: "What each role gives", rights: "Rights", inScope: "in",
  roleNames: { platform_admin: "platform_admin", app_admin: "app_admin", project_admin: "project_admin", member: "member" } as Record<string, string>,
};

export const usage = {
  title: "Usage", by: "By", groups: { person: "Person", project: "Project", model: "Model", day: "Day" } as Record<string, string>, since: "Since", until: "Until", requests: "Requests", input: "Tokens in", output: "Tokens out", cacheRead: "From cache", cacheWrite: "Into cache", cost: "Cost", share: "Share", total: "Total",
  empty: "No model was asked in these days", emptyHint: "What agents ask models is counted here, with its cost. Choose other days, or start a session.", budgets: "Budgets of this month", subject: "Whose", limit: "Limit", spent: "Spent", noBudgets: "No budgets. Set one from a terminal:", thisMonth: "This month",
};

export const account = {
  title: "Your account", menu: "Account", who: "You are", may: "This login may", password: "Password", passwordHint: "Every other browser is logged out.", old: "Old password", new: "New password, at least 10 characters", again: "New password again", different: "These two differ.", change: "Change the password", changed: (n: number) => `The password was changed; ${s(n, "other browser")} logged out.`,
  tokenOnly: "You came in with a token or a login link, not with a password. Make one for others on the page of people.", everywhere: "Log out everywhere", everywhereHint: "Every browser with your login asks for it again, this one too. Tokens stay.", roles: "Your roles", noRoles: "You have no roles of your own.", yourself: "Account", owner: "the owner of this server",
};
