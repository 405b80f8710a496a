// What the pages of sessions, the inbox and the guided example say.
const s = (count: number, one: string, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export const sessions = {
  title: "Sessions", new: "New session", history: "History", today: "Today", yesterday: "Yesterday", earlier: "Earlier",
  empty: "No sessions yet", untitled: "Untitled", panel: "Details", more: "More about this session", filter: "Filter sessions", none: "No session has that in its title.",
  pin: "Keep its sandbox running", unpin: "Let its sandbox stop when idle", close: "End this session", closed: "ended", remove: "Delete this session", removed: "The session was deleted.",
  removeTitle: "Delete this session?", removeHint: "What was said, and what is not committed, is gone for good. What the agent committed stays.",
  closedHint: "This session has ended. It takes no more messages.",
  draft: {
    title: "What should be done?", project: "Project", provider: "Agent", land: "When it is done", folder: "Only below (optional)",
    lands: { auto: "land the changes", after_review: "wait for me to land them", never: "keep them out" } as Record<string, string>,
    noProjects: "An agent works in a project. Make one first.", notInstalled: "not installed",
    cards: [
      { title: "Find your way around", prompt: "Look through the files here and write a short overview: what is where, and what looks out of date." },
      { title: "Change something", prompt: "Read @plan.md and move the launch to July. Tell me what else depends on the date." },
      { title: "Check something", prompt: "Compare the tables in this project and list every number that contradicts another." },
      { title: "Write something down", prompt: "Write meeting-notes.md with headings for decisions, open questions and who does what." },
    ],
    example: "See it happen first: three agents, one file", exampleHint: "Two minutes, no key, nothing to install.",
  },
  states: {
    restoring: "restoring", linking: "linking", preparing: "preparing", running: "running", syncing: "syncing", stopped: "stopped", error: "error", waiting: "waiting for you",
  } as Record<string, string>,
  stateHints: {
    restoring: "Its folder and its memory are being brought back", linking: "Its own files are being put in place", preparing: "Its program is being started", running: "It works", syncing: "Its work is being stored and landed",
    stopped: "It does nothing now", error: "The last run failed", waiting: "It has a question",
  } as Record<string, string>,
  list: { waits: (n: number) => `waits for you · ${s(n, "question")}`, landed: (n: number) => `landed ${s(n, "file")}`, working: "working" },
  thread: {
    label: "Conversation", older: "Loading older messages", you: "You", agent: "Agent", thinking: "Thinking…", thought: "Thought", thoughtFor: (time: string) => `Thought for ${time}`,
    step: (n: number) => `step ${n}`, source: "Source", copy: "Copy", copied: "Copied", rewind: "Go back to here", fork: "Continue from here in a new session", toEnd: "To the newest", done: "The agent has finished.", failed: "The run failed",
    canceled: "Stopped", queuedRun: "Waits in the queue", steered: "said while it worked", ahead: (n: number) => `${s(n, "run")} before it`, shows: "Shows", rateLimited: (seconds: number) => `The model asks for a pause: going on in ${s(Math.ceil(seconds), "second")}`,
    tokens: (n: string) => `${n} tokens`, data: "Data", empty: "Nothing was said yet.", retry: "Send it again", interrupted: "The connection was lost while the answer came in.", cut: "Shortened; the run's events have all of it.",
    rewindTitle: "Go back to this message?", rewindHint: "The conversation goes on from here. What was said after it is set aside.", rewindFiles: "Also put the session's files back to how they were", rewound: "Back at that message.", forked: "This is a new session with the conversation up to that message.",
    openFile: "Open file",
  },
  tools: {
    names: { bash: "run", read: "read", edit: "edit", write: "write", search: "search", web: "web", todo: "todo", other: "tool" } as Record<string, string>,
    running: "running", error: "failed", denied: "not allowed", output: "Output", input: "Input", noOutput: "No output.",
  },
  question: {
    waits: "The agent asks", permission: "The agent asks for permission", deadline: (time: string) => `answers within ${time}`, over: "time is up", else: "Something else…", answer: "Answer", send: "Send", allowOnce: "Allow once", allowSession: "Allow in this session", deny: "Do not allow", reason: "Why not? (optional)",
    answered: "answered", expired: "not answered in time", canceled: "withdrawn", defaulted: "went on without an answer", by: (who: string) => `by ${who}`, pick: "Choose any number", context: "About", none: "No question waits", noneHint: "When an agent asks you something, it shows here and in the conversation.",
    history: "Answered before", next: "Next question",
  },
  landing: {
    title: "What became of the changes", landed: (seq: number) => `in snapshot #${seq}`, waits: "Not in the project yet", heldBack: (n: number) => `${s(n, "file")} held back: they look like credentials or have odd names`, none: "No file was changed.",
    land: "Land it", discard: "Discard it", didLand: "The work is in the project.", didDiscard: "The work was thrown away.", review: "Decide", compare: "Compare", undo: "Undo this run…", undoHint: "An undo keeps everyone's later edits.", more: (n: number) => `and ${n.toLocaleString("en")} more`, uncommitted: "waits here", discarded: "discarded",
    discardTitle: "Throw this work away?", discardHint: "What the runs of this session left uncommitted is gone for good.",
  },
  composer: {
    label: "Message", placeholder: (agent: string) => `Message ${agent}, @ a file`, send: "Send", stop: "Stop", stopping: "Stopping…", escStops: "Esc stops", attach: "Attach", attaching: "Attaching…", attachHint: "Put a file into the session's folder", retry: "Try again", enter: "Enter sends, Shift Enter starts a new line", files: "Files to mention",
    profiles: { default: "works by itself", ask: "asks before changes", plan: "only plans" },
    mode: "While the agent works", modes: { queue: "Queue", steer: "Steer", interrupt: "Interrupt" } as Record<string, string>,
    modeHints: { queue: "Begins when this run has ended", steer: "Reaches the agent in the midst of this run", interrupt: "Stops this run and begins at once" } as Record<string, string>,
    queued: "Next", dequeue: "Take it out of the queue", profile: "Mode of work", removeFile: (name: string) => `Remove ${name}`, failed: "That was not sent",
  },
  share: {
    open: "Share…", title: "Share this session", intro: "Show this conversation to somebody, or let them talk to the agent too. They must be able to read where it works. It ends when you take it back.", person: "Person", may: "May", share: "Share", none: "You share it with nobody.", list: "Shared with", takeBack: "Take back",
    levels: { read: "read along", drive: "drive it" } as Record<string, string>, hints: { read: "Sees all that is said and done, live. Changes nothing.", drive: "Also sends messages, stops runs and answers the agent. The agent works with your rights all the same." } as Record<string, string>,
    levelOf: (who: string) => `What ${who} may do`, takenBack: (who: string) => `${who} does not see this session any more.`, by: (who: string) => `shared by ${who}`, section: "Shared with you", readHint: (who: string) => `You read along. ${who} can let you drive it.`, leave: "Leave this session", left: "You left the session.",
  },
  panelTabs: { agent: "Agent", todo: "Todo", changes: "Changes", files: "Files", preview: "Preview", terminal: "Terminal", ask: "Ask" } as Record<string, string>,
  agent: {
    run: "Run", executor: "Executor", machine: "Machine", attempt: "Attempt", program: "Program", model: "Model", started: "Started", took: "Took", lastError: "Last error", noError: "none", worker: "Sandbox", synced: "Stored", never: "never", phases: "Phases", noRun: "No run yet", noRunHint: "Write a message, and the agent begins.",
    usage: "Usage", input: "Tokens in", output: "Tokens out", cost: "Cost", runs: "Runs", lands: "Landing", name: "Works as",
  },
  todo: { none: "No todo list", noneHint: "An agent that plans its work shows its steps here.", doing: "Doing", todo: "To do", done: "Done", canceled: "Dropped", timeline: "How it went", changes: { added: "added", changed: "changed", removed: "removed" } as Record<string, string>, progress: (done: number, all: number) => `${done} of ${all} done`, replay: "Step of the list", at: (step: number, all: number) => `step ${step} of ${all}`, now: "Now" },
  changes: { none: "No changes yet", noneHint: "Every file that the agent touches shows here, with what became of it.", since: "Since your last message", run: (n: number) => `Run ${n}`, waiting: "Waits in the session's folder", uncommitted: "Not committed yet", all: "The whole session", elsewhere: "The folder is on a machine that does not answer now.", comment: "Write about this line to the agent" },
  files: {
    none: "No folder yet", noneHint: "The session's folder is made with the first message. Until then the project's files are here:", usage: (used: string, files: number) => `${used} not committed, ${s(files, "file")}`, upload: "Upload files", drop: "Drop to upload into the session's folder", refresh: "Read again", deleted: (path: string) => `${path} was deleted.`, renamed: (path: string) => `Now at ${path}.`, uploaded: (n: number) => `${s(n, "file")} uploaded.`,
    choose: "Choose a file", chooseHint: "A file that you open in Files shows here.", page: (from: string, to: string, all: string) => `${from} to ${to} of ${all}`, next: "Next part", previous: "Part before", saved: (path: string) => `${path} was saved.`, changed: "The file changed meanwhile. Read it again before you save.", history: "Who changed it", cannot: "This cannot be shown here. Download it.", message: "in this message",
  },
  terminal: {
    label: "Terminal", off: "No sandbox runs now", offHint: "The terminal is a shell in the session's sandbox. Write the agent a message: that starts the sandbox, and the terminal opens here.", closedHint: "This session has ended, and so has its sandbox.", denied: "No terminal for you here", deniedHint: "A terminal is for the session's owner, and for people who may drive it and may open terminals in the project.",
    connecting: "Connecting…", lost: "The connection is lost. The shell goes on; connecting again…", reconnect: "Connect now", ended: "The shell has ended.", again: "Open a new one", hint: (key: string) => `What you change here lands with the agent's next run. ${key} leaves the terminal.`,
  },
};

export const inbox = {
  title: "Inbox", empty: "Nothing waits for you", emptyHint: "Questions of agents, reviews, failed runs, files that cannot be stored and budgets come together here.", all: "Everything",
  filters: { question: "Questions", review: "Reviews", failed: "Failed runs", unstored: "Not stored", budget: "Budgets" },
  kinds: { question: "asks", review: "in review", failed: "failed run", unstored: "not stored", budget: "budget" },
  spent: (spent: string, limit: string) => `${spent} of ${limit} spent this month`, open: (n: number) => `${n} waiting`, answered: "Answered.", notify: "Notify me", notifyOn: "You are notified", notifyDenied: "This browser blocks notifications of this page.", notification: (n: number) => `${s(n, "thing")} for you in contextbase`, list: "What waits",
};

export const example = {
  title: "Three agents, one file", intro: "Three small agents work in the same project at the same time, each in a folder of its own. They follow a script, so that you see the same thing as everybody. What comes back goes through the gate.",
  start: "Start the example", again: "Start again", project: "Project", working: "At work", agents: { beans: "Adds beans to the plan, and a list of seeds", dates: "Moves sowing to April", frost: "Moves sowing to May, because of frost" } as Record<string, string>,
  steps: { project: "A project with two files is made", run: "Three agents begin, at the same snapshot", merge: "Changes at different places are merged", question: "Two of them changed the same line: that one waits for you" } as Record<string, string>,
  result: "What happened", merged: "Nobody overwrote anybody. plan.md has what all of them wrote at different places.", conflict: "Sowing in April or in May: both wrote the same line. Neither is lost. It is yours to decide.", decide: "Decide it", look: "Look at the file", log: "See the history", chat: "Start a session here", see: "See its conversation", noQuestion: "No question was left this time: the agents' changes came one after the other.", failed: "The example stopped",
  made: "Your turn: start a session of your own.", skip: "Skip", point: "Why this matters", pointText: "Agents keep plain folders and any tool they like. The gate merges what fits, keeps what does not, and asks you only where two people would have to talk.",
};
