// The guided example: a project, three agents that follow a script, and what the gate makes of their work. Nothing lands
// before all three have ended, so that they surely began at the same snapshot, however slow the machine is.
import { api, body } from "../api/client";
import type { Landing } from "./parts";
import { createSession, type Run, sendMessage } from "./queries";
import { hasEnded } from "./states";

export const AGENTS = ["beans", "dates", "frost"] as const;
export type ExampleAgent = (typeof AGENTS)[number];
export type ExampleRun = { agent: ExampleAgent; session: string; run: Run; landing?: Landing };
export type ExampleState = { step: "project" | "run" | "merge" | "done"; project: string; runs: ExampleRun[] };

const PLAN = "# Garden plan\n\n## Beds\n\n- carrots\n- peas\n\n## Dates\n\nSow in March.\n\n## Helpers\n\nAnn waters on Mondays.\n";
const SHOP = "# To buy\n\n- compost\n";

const TASKS: Record<ExampleAgent, { task: string; steps: object[] }> = {
  beans: {
    task: "Add beans to the plan, and write a list of seeds.",
    steps: [
      { text: "I look at the plan first." },
      { tool: "read", input: { path: "plan.md" } },
      { text: "Beans go well beside carrots and peas." },
      { tool: "edit", input: { path: "plan.md", old: "- peas", new: "- peas\n- beans" } },
      { tool: "write", input: { path: "seeds.md", content: "# Seeds\n\n- carrots, 200\n- peas, 80\n- beans, 60\n" } },
      { text: "Beans are in the plan, and **seeds.md** says how many we need." },
    ],
  },
  dates: {
    task: "Move sowing to April.",
    steps: [
      { text: "The date stands in plan.md." },
      { tool: "edit", input: { path: "plan.md", old: "Sow in March.", new: "Sow in April, when the soil is dry." } },
      { text: "Sowing is in April now." },
    ],
  },
  frost: {
    task: "There may be frost until May. Move sowing, and ask for a second helper.",
    steps: [
      { text: "Frost would kill the seedlings, so I move the date." },
      { tool: "edit", input: { path: "plan.md", old: "Sow in March.", new: "Sow in May, after the last frost." } },
      { tool: "edit", input: { path: "plan.md", old: "Ann waters on Mondays.", new: "Ann waters on Mondays, Ben on Thursdays." } },
      { text: "Sowing is in May, and Ben helps on Thursdays." },
    ],
  },
};

const PAUSE_MS = 600;
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export async function runExample(tell: (state: ExampleState) => void, signal: AbortSignal): Promise<ExampleState> {
  const project = await makeProject();
  let state: ExampleState = { step: "run", project, runs: [] };
  const change = (changes: Partial<ExampleState>) => tell((state = { ...state, ...changes }));
  change({});
  const runs = await Promise.all(AGENTS.map((agent) => begin(agent, project)));
  change({ runs });
  while (state.runs.some(({ run }) => !hasEnded(run.state))) {
    await pause(PAUSE_MS);
    signal.throwIfAborted();
    change({ runs: await Promise.all(state.runs.map(async (one) => (hasEnded(one.run.state) ? one : { ...one, run: await body(api.GET("/api/v1/runs/{run}", { params: { path: { run: one.run.id } } })) }))) });
  }
  const failed = state.runs.find(({ run }) => run.state !== "succeeded");
  if (failed) throw new Error(failed.run.message ?? failed.run.reason ?? failed.run.state);
  change({ step: "merge" });
  for (const one of state.runs) {
    const landing = await body(api.POST("/api/v1/sessions/{session}/land", { params: { path: { session: one.session } } }));
    signal.throwIfAborted();
    change({ runs: state.runs.map((other) => (other.agent === one.agent ? { ...other, landing } : other)) });
    await pause(PAUSE_MS);
  }
  change({ step: "done" });
  return state;
}

async function makeProject(): Promise<string> {
  const taken = new Set((await body(api.GET("/api/v1/projects", { params: { query: { limit: 1000 } } }))).projects.map((one) => one.name));
  let name = "garden";
  for (let number = 2; taken.has(name); number++) name = `garden-${number}`;
  await body(api.POST("/api/v1/projects", { body: { name, description: "The guided example: three agents, one file" } }));
  const changes = [{ action: "write" as const, path: "plan.md", text: PLAN }, { action: "write" as const, path: "shopping.md", text: SHOP }];
  await body(api.POST("/api/v1/commits", { body: { project: name, base_seq: 0, message: "Start the plan", changes } as never }));
  return name;
}

async function begin(agent: ExampleAgent, project: string): Promise<ExampleRun> {
  const { task, steps } = TASKS[agent];
  const session = await createSession({ project, provider: "scripted", model: "scripted", land: "after_review", title: task });
  const message = `${task}\n\n\`\`\`script\n${JSON.stringify(steps)}\n\`\`\`\n`;
  return { agent, session: session.id, run: await sendMessage(session.id, message) };
}
