// Every word the workbench says. A text with values in it is a function; zh.ts must have the same shape.
import { account, apps, people, usage } from "./people.en";
import { example, inbox, sessions } from "./sessions.en";

const s = (count: number, one: string, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export const en = {
  nav: {
    main: "Main", sessions: "Sessions", projects: "Projects", review: "Review", inbox: "Inbox", store: "Store", admin: "Admin",
    skip: "Skip to content", palette: "Search or jump to", menu: "You and settings", collapse: "Narrow the navigation",
    expand: "Widen the navigation",
  },
  common: {
    loading: "Loading", retry: "Try again", cancel: "Cancel", close: "Close", undo: "Undo", save: "Save", edit: "Edit",
    more: "Show more", copyLink: "Copy link", copied: "Link copied", download: "Download", create: "Create", delete: "Delete",
    rename: "Rename", open: "Open", back: "Back", now: "now", justNow: "just now", name: "Name", search: "Search",
    reload: "Reload", dismiss: "Dismiss", filter: "Filter", clear: "Clear", all: "All", none: "none", apply: "Apply",
    copy: "Copy",
  },
  live: {
    live: "Live", connecting: "Connecting", lost: (age: string) => `Reconnecting, ${age} old`,
    offline: "The server does not answer. What you see may be old.",
  },
  login: {
    title: "Log in", intro: "This page shows nothing without a login.",
    how: "Open the address that `contextbase up` printed, or make another on the server's machine:",
    paste: "Or paste a token", token: "Token", submit: "Log in", expired: "Your login has ended. Log in again; you stay on this page.",
    logout: "Log out", name: "Login name", password: "Password", withToken: "Log in with the token", withProvider: (name: string) => `Log in with ${name}`,
    choose: "Choose a password", newPassword: "New password, at least 10 characters",
    chooseHint: "You were invited, or your password was reset. The address works once.",
  },
  errors: {
    title: "That did not work", notFound: "Nothing is here", notFoundHint: "It was deleted, renamed, or you may not see it.",
    forbidden: "You may not do this", purged: "This content was purged", purgedHint: "Its history entry stays; the content is gone for good.",
    busy: (seconds: number) => `The server is busy. Trying again is fine in ${s(seconds, "second")}.`,
    deletedByOther: "Somebody else deleted this file just now.", crashed: "This page ran into an error",
  },
  theme: { title: "Theme", system: "As the system", light: "Light", dark: "Dark" },
  language: { title: "Language" },
  palette: {
    title: "Command palette", placeholder: "A page, a project, a file, an action…", empty: "Nothing matches.",
    pages: "Pages", projects: "Projects", files: "Files", actions: "Actions", searchFor: (q: string) => `Search contents for “${q}”`,
  },
  shortcuts: {
    title: "Keyboard shortcuts", palette: "Command palette", help: "This list", nextItem: "Next", previousItem: "Previous",
    goProjects: "Go to projects", goReview: "Go to review", goSessions: "Go to sessions", goInbox: "Go to the inbox", goStore: "Go to the store", everywhere: "Everywhere", here: "On this page", then: "then",
  },
  projects: {
    title: "Projects", count: (n: number) => s(n, "project"), new: "New project", name: "Name", description: "What is it about?",
    nameHint: "Letters a–z, digits, and . _ - ; it starts with a letter or a digit.",
    empty: "No projects yet", emptyHint: "A project is one versioned tree of files. Make one, then drop files into it or import a folder:",
    filter: "Filter projects", created: (name: string) => `Project ${name} was created.`, commits: (n: number) => s(n, "commit"),
    noCommits: "empty", noneMatch: "No project has that in its name.",
  },
  project: {
    files: "Files", log: "History", compare: "Compare", search: "Search", workspaces: "Agents", settings: "Access", audit: "Audit",
    size: (files: number, size: string) => `${s(files, "file")} · ${size}`, agents: (n: number) => `${s(n, "agent")} at work`,
    waiting: (n: number) => `${n} in review`, import: "Upload", importHint: "Drop files or folders anywhere on this page",
    downloadAll: "Download as archive", tabs: "Parts of the project",
  },
  tree: {
    label: "Files", empty: "No files yet", emptyHint: "Drop files or folders here, make a file, or import a folder from a terminal:",
    newFile: "New file", newFolder: "New folder", filter: "Find a file by name", loading: "Loading files", noneMatch: "No file has that name.",
    pathPrompt: "Path", newFileTitle: "New file", newFolderTitle: "New folder", collapseAll: "Collapse all folders", more: "loading more…",
    refreshed: "Reload the files",
  },
  file: {
    version: (n: number) => `version ${n}`, blame: "Blame", compare: "Compare…", edit: "Edit", history: "Versions", history2: "Versions of this file",
    inReview: (n: number) => `${n} in review`, choose: "Choose a file", chooseHint: "Files are on the left; Ctrl K finds one by name.",
    folder: "This is a folder", binary: "This file is not text", image: "Picture", size: "Size", type: "Type", 
    symlink: "A link to", executable: "executable", message: "What did you change? (optional)", saving: "Saving…", editing: "Editing", discard: "Discard the changes",
    deleted: (path: string) => `${path} was deleted.`, renamed: (path: string) => `Now at ${path}.`, renameTitle: "Rename or move", newPath: "New path",
    atSnapshot: (seq: number) => `as of #${seq}`, backToNow: "Back to now", restore: "Restore this version…", lineLink: "Line", sideVersions: "Set aside",
    gone: (seq: number) => `This file did not exist at #${seq}.`, emptyFile: "This file is empty.", contents: "File contents", unsaved: "Unsaved changes",
    page: (n: number, all: number) => `page ${n} of ${all}`, copyPath: "Copy path", pathCopied: "Path copied",
  },
  outcome: {
    written: "written", merged: "merged", unchanged: "unchanged", superseded: "superseded", in_review: "in review", refused: "refused",
    added: "added", changed: "changed", renamed: "renamed", deleted: "deleted", removed: "removed",
    saved: (path: string) => `${path} was saved.`, savedMerged: (path: string) => `${path} was saved and merged with what others changed.`,
    waits: (path: string) => `Your change of ${path} conflicts with somebody else's. It waits in review.`, refusedBecause: (why: string) => `Refused: ${why}`,
    nothing: (path: string) => `${path} was the same already.`, undone: "Undone.", undoneMore: "Undone. Some places wait in review, because others built on them.",
  },
  log: {
    title: "History", empty: "No commits yet", emptyHint: "Every accepted change shows here, with who made it and what it was merged with.",
    filterPath: "Path", filterWho: "Who", filterRun: "Run", changes: (n: number) => s(n, "change"), moreChanges: (n: number) => `and ${n.toLocaleString("en")} more`,
    mergedWith: (seqs: string) => `merged with ${seqs}`, undo: "Undo…", diff: "Changes", browse: "Browse", rollback: "Roll back to here…",
    conversation: "Conversation", noneMatch: "No commit matches these filters.", noMessage: "no message",
  },
  undo: {
    title: (what: string) => `Undo ${what}`, rollbackTitle: (seq: number) => `Roll back to #${seq}`, commit: (seq: number) => `#${seq}`,
    intro: "What others did since stays. Nothing is lost: an undo is a commit, too, and can be undone.",
    rollbackIntro: "Everything becomes as it was then, as a new commit. Nothing is lost: it can be undone.",
    nothing: "There is nothing to change: it was undone already, or changed since.", contested: (n: number) => `${s(n, "file")} will wait in review, because others built on it`,
    files: (n: number) => `${s(n, "file")} would change`, do: "Undo it", doRollback: "Roll back", done: (seq: number) => `Done, as #${seq}.`, preview: "Preview",
  },
  compare: {
    title: "Compare", from: "From", to: "To", head: "now", same: "These two snapshots are the same.", files: (n: number) => s(n, "file"), onlyPath: "Only below",
    empty: "Choose two snapshots", emptyHint: "A number such as 12, a tag, a time such as 2026-01-31T12:00, or “head”.", binary: "Not text: only sizes are compared.",
    swap: "Swap", sizes: (a: string, b: string) => `${a} → ${b}`, unified: "One column", sideBySide: "Side by side", old: "before", new: "after", expandAll: "Open all", collapseAll: "Close all",
  },
  time: {
    title: "Time machine", now: "now", hint: "Drag to see the project as it was; Shift-drag compares", at: (seq: number) => `#${seq.toLocaleString("en")}`,
    older: "Older", slider: "Snapshot", none: "No history yet.",
  },
  search: {
    title: "Search", placeholder: "Text in files", regex: "Regular expression", ignoreCase: "Ignore case", wholeWord: "Whole word", glob: "Only files like", globHint: "*.md, docs/**",
    files: (n: number, lines: number) => `${s(lines, "line")} in ${s(n, "file")}`, none: "Nothing found", noneHint: "Check the spelling, or ignore case.", names: "Names", contents: "Contents",
    empty: "Search names and contents", emptyHint: "Results are links to the line, at the snapshot that was searched.", stopped: "There is more.", skipped: (n: number) => `${s(n, "file")} could not be searched.`,
  },
  upload: {
    title: "Uploading", done: (n: number) => `${s(n, "file")} uploaded`, waiting: (n: number) => `${s(n, "file")} in review`, failed: (n: number) => `${s(n, "file")} refused`,
    drop: "Drop to upload", dropInto: (folder: string) => `Drop to upload into ${folder}`, progress: (done: number, all: number) => `${done} of ${all}`, root: "the project", choose: "Choose files",
  },
  review: {
    title: "Review", open: (n: number) => `${n} open`, keys: "j / k next · 1 2 3 choose · e edit · c claim · Enter decide", empty: "Nothing waits for you",
    emptyHint: "When two writers change the same place, both sides wait here. Nothing is lost meanwhile.",
    now: "Now", before: "Before", proposed: "Proposed", suggested: "Suggested", both: "Both", result: "Result", use: (which: string) => `Use ${which.toLowerCase()}`, reject: "Reject", edit: "Edit",
    edited: "your edit", told: "The author is told what you decided.", decided: (path: string) => `${path} was decided.`, rejected: (path: string) => `The proposal for ${path} was rejected.`,
    place: (n: number, all: number) => `Place ${n} of ${all}`, onePlace: (path: string) => `one place of ${path}; everything else merged by itself`, places: (n: number, path: string) => `${n} places of ${path}; everything else merged by itself`,
    whole: (path: string) => `all of ${path}`, nothingThere: "nothing", notText: "not text", against: (a: string, b: string) => `${a} against ${b}`, by: (who: string) => `by ${who}`, claim: "Claim", release: "Release", takeOver: "Take over", yours: "you are on it", isOnIt: (who: string) => `${who} is on it`, claimedBy: (who: string) => `claimed by ${who}`,
    states: { open: "Open", resolved: "Resolved", rejected: "Rejected", obsolete: "Obsolete" }, state: "State", allProjects: "All projects", discussion: "Discussion", comment: "Say something about it", send: "Comment",
    moved: "The file changed meanwhile. Here is the comparison as it is now; decide again.", closed: (state: string) => `This item is closed: ${state}.`, choose: "Choose a side for each place first.",
    reasons: {
      critical: "a protected file was changed", content: "both changed the same place", "deleted-and-changed": "one deleted what the other changed", "renamed-twice": "renamed to two places",
      "file-and-folder": "a file and a folder of one name", "folder-not-empty": "the folder is not empty", "kind-changed": "became another kind of entry",
    } as Record<string, string>,
    suggestionBy: (who: string) => `suggestion by ${who}`, all: "Everything from", deletion: "deletes it", list: "What waits",
  },
  workspaces: {
    title: "Agents at work", empty: "No agent works here now", emptyHint: "An agent opens a private copy of the project like this:", changed: (n: number) => s(n, "uncommitted change"), none: "no changes yet",
    behind: (n: number) => `${s(n, "commit")} behind`, upToDate: "up to date", seen: "last seen", machine: "machine", base: "from", show: "What changed", showEnded: "Ended ones, too", agent: "Agent", state: "State", commits: (n: number) => s(n, "commit"),
    states: { open: "at work", completed: "completed", abandoned: "abandoned", lost: "lost" } as Record<string, string>, elsewhere: "This folder is on another machine; ask there.",
  },
  access: {
    title: "Access", intro: "The most specific rule that matches decides; where none does, the default.", default: "Default", subject: "Who", pattern: "Where", level: "May", add: "Add rule", remove: "Remove",
    explain: "Explain", explainIntro: "What may somebody do at a path, and which rule says so?", path: "Path", who: "Who", because: "because", noRules: "No rules: the default holds everywhere.",
    levels: { hidden: "see nothing", R: "read", RA: "read, add", "RW-": "read, write, not delete", RW: "read, write, delete" } as Record<string, string>, ruleRemoved: "The rule was removed.", ruleAdded: "The rule was added.", merge: "Merging", mergeNone: "No merge rules: every type by its own merge.",
  },
  audit: {
    title: "Audit", system: "System audit", who: "Who", action: "Action", path: "Path", via: "Way in", when: "When", what: "What", empty: "No entry matches", emptyHint: "Change or clear the filters.", export: "Export as JSON lines", since: "Since", until: "Until",
  },
  admin: {
    health: "Health", tokens: "Tokens", audit: "Audit", database: "Database", blobs: "Blob store", ok: "works", server: "Server", version: "Version", chores: "Chores", leader: "Done by", lastRun: "Last run", result: "Result", never: "never", you: "You",
    notAdmin: "Only administrators see this page.", alive: "answers", dead: "does not answer", every: "Chore", failed: "failed", seconds: "Seconds",
    doctor: {
      title: "What works on this machine", checked: "checked", again: "Check again", advice: "What to do:",
      groups: { broken: "Needed, and does not work", no: "Not available here; contextbase works without it", yes: "Works" },
      names: {
        database: "Database", s3: "Bucket for large files", "data folder": "Data folder", overlay: "Folders for agents", reflink: "Files that share blocks", quota: "Limit of a folder's size",
        sandbox: "Sandboxes", bubblewrap: "bubblewrap", docker: "Docker", git: "git", machines: "Machines", sessions: "Files of sessions",
      } as Record<string, string>,
    },
  },
  tokens: {
    title: "Tokens", intro: "Agents, adapters and people come in with a token. It is shown once.", create: "New token", name: "For", kind: "Kind", actions: "May", expires: "Expires", revoke: "Revoke", revoked: "revoked", expired: "expired", project: "Project", any: "all projects",
    days: "Days", created: "The token was made. Copy it now; it is not shown again.", empty: "No tokens", revokedToast: (who: string) => `The token of ${who} was revoked.`, made: "Made", active: "active",
  },
  sessions, inbox, example, account, apps, people, usage,
  count: s,
};

export type Messages = typeof en;
