// The official client against a real server: `useChat` of @ai-sdk/react in a component, in node. Every chunk of every stream is
// checked by the schema of the package, and every message is the one of the history. Started by tests/e2e/test_chat_api.py.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { JSDOM } from "jsdom";

const { url, token, project, samples, steps } = JSON.parse(readFileSync(0, "utf8"));
const { window } = new JSDOM("<main></main>", { url });
Object.assign(globalThis, { window, document: window.document });
globalThis.navigator ??= window.navigator; // newer versions of node have one

const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useChat } = await import("@ai-sdk/react");
const { DefaultChatTransport, readUIMessageStream, safeValidateUIMessages, uiMessageChunkSchema } = await import("ai");

const api = `${url}/api/v1/chat`;
const headers = { authorization: `Bearer ${token}` };
const schema = await uiMessageChunkSchema();
const plain = (value) => JSON.parse(JSON.stringify(value));
let checked = 0;

async function check(chunk) {
  const result = await schema.validate(chunk);
  assert.ok(result.success, `${JSON.stringify(chunk)}: ${result.error}`);
  checked += 1;
}

/** Reads a copy of each stream beside the client. */
async function watchedFetch(input, init) {
  const response = await fetch(input, init);
  if (!response.ok || response.status === 204) return response;
  assert.equal(response.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  const [mine, its] = response.body.tee();
  void (async () => {
    let text = "";
    for await (const piece of mine.pipeThrough(new TextDecoderStream())) text += piece;
    for (const line of text.split("\n")) {
      if (line.startsWith("data: {")) await check(JSON.parse(line.slice(6)));
    }
  })().catch((error) => error.name !== "AbortError" && process.exit(console.error(error) ?? 1));
  return new Response(its, response);
}

/** A page with the chat: what its hook returns is always at hand, and each status it has had, however briefly. */
function opened(id, options = {}) {
  const page = { statuses: new Set() };
  const transport = new DefaultChatTransport({ api, headers, fetch: watchedFetch, body: { project, provider: "scripted" } });
  const root = createRoot(window.document.createElement("div"));
  const Page = () => {
    page.chat = useChat({ id, transport, onError: (error) => (page.error = error), ...options });
    page.statuses.add(page.chat.status);
    return null;
  };
  root.render(createElement(Page));
  page.close = () => root.unmount();
  return page;
}

async function until(what, isSo) {
  for (const end = Date.now() + 300_000; Date.now() < end; await pause(20)) {
    const found = await isSo();
    if (found) return found;
  }
  assert.fail(`waited in vain: ${what}`);
}

const ready = (page) => until("a chat", () => page.chat);
const parts = (page, type) => (page.chat.messages.at(-1)?.parts ?? []).filter((part) => part.type === type);
const rest = (page) => until("the end of an answer", () => page.chat.status === "ready" && page.chat.messages.at(-1)?.role === "assistant");

async function asked(path, body) {
  const init = body === undefined ? { headers } : { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`${url}/api/v1/${path}`, init);
  assert.ok(response.ok, `${path}: ${response.status} ${await response.clone().text()}`);
  return await response.json();
}
const history = async (id) => (await asked(`chat/${id}/messages`)).messages;

async function sameAsHistory(page, id) {
  const stored = await history(id);
  assert.deepEqual(plain(page.chat.messages.at(-1)), stored.at(-1));
  const valid = await safeValidateUIMessages({ messages: stored });
  assert.ok(valid.success, String(valid.error));
}

const scenarios = {
  async "send and stream"() {
    const page = opened("sent");
    await ready(page);
    void page.chat.sendMessage({ text: steps.written });
    await rest(page);
    assert.deepEqual([...page.statuses], ["ready", "submitted", "streaming"]);
    assert.equal(parts(page, "dynamic-tool")[0].state, "output-available");
    assert.equal(parts(page, "data-landing")[0].data.state, "landed");
    await sameAsHistory(page, "sent");
  },
  async "stop"() {
    const page = opened("stopped");
    await ready(page);
    void page.chat.sendMessage({ text: steps.endless });
    await until("a tool", () => parts(page, "dynamic-tool").some((part) => part.state === "output-available"));
    await asked("chat/stopped/stop", {});
    await rest(page);
    assert.equal(parts(page, "data-run")[0].data.state, "canceled");
    await sameAsHistory(page, "stopped");
  },
  async "an error"() {
    const page = opened("failed");
    await ready(page);
    void page.chat.sendMessage({ text: steps.failing });
    await until("an error", () => page.chat.status === "error" && page.error);
    assert.equal(parts(page, "data-run")[0].data.state, "failed");
  },
  async "reload, resume and a second tab"() {
    const first = opened("resumed");
    await ready(first);
    void first.chat.sendMessage({ text: steps.asking });
    await until("a question", () => parts(first, "data-question").length > 0);
    first.close();
    await first.chat.stop(); // hangs up, as a page that is left does
    const tabs = [];
    for (let number = 0; number < 2; number += 1) tabs.push(opened("resumed", { messages: await history("resumed"), resume: true }));
    for (const tab of tabs) {
      await ready(tab);
      await until("the question again", () => tab.chat.status === "streaming" && parts(tab, "data-question").length > 0);
      assert.equal(tab.chat.messages.filter((message) => message.role === "assistant").length, 1);
    }
    const { run_id, question_id, options } = parts(tabs[0], "data-question")[0].data;
    await asked(`runs/${run_id}/human-loop/${encodeURIComponent(question_id)}/reply`, { values: [options[0].value] });
    for (const tab of tabs) {
      await rest(tab);
      assert.equal(parts(tab, "data-question")[0].data.state, "answered");
      assert.equal(parts(tab, "text").at(-1).text, "Thank you.");
      await sameAsHistory(tab, "resumed");
    }
    const idle = opened("resumed", { messages: await history("resumed"), resume: true });
    await ready(idle);
    await pause(200);
    assert.equal(idle.chat.status, "ready");
  },
  async "every kind of event, by the package's own reducer"() {
    for (const { chunks, message } of samples) {
      for (const chunk of chunks) await check(chunk);
      const stream = new ReadableStream({ start: (to) => (chunks.forEach((chunk) => to.enqueue(chunk)), to.close()) });
      let last;
      for await (const one of readUIMessageStream({ stream, onError: () => {} })) last = one;
      assert.deepEqual(plain(last), message);
    }
  },
};

for (const [name, run] of Object.entries(scenarios)) {
  await run();
  console.log(`${name}: done`);
}
assert.ok(checked > 500);
process.exit(0);
