import { describe, expect, it } from "vitest";
import { counted, lineDiff } from "../src/sessions/lineDiff";
import { blocksOf, plainTerminal, safeUrl } from "../src/sessions/markdownText";
import { mentionAt } from "../src/sessions/mentions";
import { type ChatMessage, groupedTodos, landingsOf, latest, projectPath, questionsOf, shownFiles, todoMoments, todosAt, totalsOf } from "../src/sessions/parts";
import { agentState, formatClock, formatCount, formatDuration } from "../src/sessions/states";
import { diffOf } from "../src/sessions/ToolCard";
import { joined } from "../src/sessions/useSessionChat";

const message = (id: string, ...parts: unknown[]) => ({ id, role: "assistant", parts }) as ChatMessage;

describe("lines that an agent changes", () => {
  it("keep what both texts have", () => {
    expect(lineDiff("a\nb\nc\n", "a\nx\nc\nd\n")).toEqual([" a", "-b", "+x", " c", "+d"]);
  });
  it("give both texts back", () => {
    const [before, after] = ["one\ntwo\nthree\nfour\n", "zero\none\nthree\nfour and\nfive\n"];
    const lines = lineDiff(before, after);
    const side = (mark: string) => lines.filter((line) => line[0] !== mark).map((line) => `${line.slice(1)}\n`).join("");
    expect([side("+"), side("-")]).toEqual([before, after]);
  });
  it("are all new in a new file", () => {
    expect(counted(lineDiff("", "a\nb\n"))).toEqual({ added: 2, removed: 0 });
  });
  it("are found in the input of each program's tools", () => {
    const part = (toolName: string, input: unknown) => ({ type: "dynamic-tool", toolName, toolCallId: "1", state: "input-available", input }) as never;
    expect(diffOf(part("edit", { file_path: "a", old_string: "x", new_string: "y" }))).toEqual(["-x", "+y"]);
    expect(diffOf(part("edit", { filePath: "a", oldString: "x", newString: "y" }))).toEqual(["-x", "+y"]);
    expect(diffOf(part("edit", { patch: "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n" }))).toEqual(["-x", "+y"]);
    expect(diffOf(part("write", { file_path: "a", content: "x\n" }))).toEqual(["+x"]);
    expect(diffOf(part("bash", { command: "ls" }))).toBeUndefined();
  });
});

describe("files that an agent shows", () => {
  const call = (toolCallId: string, paths: unknown, state = "output-available", toolName = "mcp.contextbase.show_files") => ({ type: "dynamic-tool", toolCallId, toolName, state, input: { paths } });
  it("are those of the last call that went well", () => {
    const messages = [message("m1", call("1", ["a"])), message("m2", call("2", ["/workspace/b", "c"]), call("3", ["d"], "output-error"), call("4", ["e"], "output-available", "read"))];
    expect(shownFiles(messages)).toEqual({ call: "2", paths: ["b", "c"] });
  });
  it("are none without such a call, or without paths", () => {
    expect(shownFiles([message("m1", call("1", "a")), message("m2")])).toBeUndefined();
  });
});

describe("text in Markdown", () => {
  it.each([
    ["paragraphs", "a\n\nb", 2],
    ["a fence with empty lines", "a\n\n```\nx\n\ny\n```\n\nb", 3],
    ["a list that goes on", "- a\n\n- b", 1],
    ["definitions that hold for all of it", "[a]\n\nb\n\n[a]: https://a.example", 1],
  ])("is split into blocks: %s", (_, text, count) => {
    const blocks = blocksOf(text);
    expect(blocks).toHaveLength(count);
    expect(blocks.join("\n")).toBe(text);
  });
  it.each([["https://a.example/x", true], ["mailto:a@b.example", true], ["javascript:alert(1)", false], ["JaVaScRiPt:alert(1)", false], ["data:text/html,x", false], ["/admin", false], ["vbscript:x", false]])("links to pages alone: %s", (url, isKept) => {
    expect(safeUrl(url)).toBe(isKept ? url : "");
  });
  it("a terminal's commands are left out", () => {
    expect(plainTerminal("\u001b[31mred\u001b[0m \u001b]0;title\u0007x\r\n10%\r100%\n\u0000")).toBe("red x\n100%\n");
  });
});

describe("a mention", () => {
  it("is what stands between @ and the caret", () => {
    expect(mentionAt("read @pri", 9)).toEqual({ start: 5, name: "pri" });
    expect(mentionAt("@", 1)).toEqual({ start: 0, name: "" });
  });
  it("is no mail address, and ends with a space", () => {
    expect(mentionAt("ann@example", 11)).toBeNull();
    expect(mentionAt("@plan.md and", 12)).toBeNull();
  });
});

describe("a conversation", () => {
  it("takes newer pages over what was known of them", () => {
    const ids = (messages: ChatMessage[]) => messages.map((one) => one.id).join("");
    const all = (text: string) => [...text].map((id) => message(id));
    expect(ids(joined(all("abcd"), all("cde")))).toBe("abcde");
    expect(ids(joined(all("ab"), all("xy")))).toBe("xy");
    expect(ids(joined([], all("ab")))).toBe("ab");
  });
  it("knows each question once, as it is now", () => {
    const asked = (id: string, state: string) => ({ type: "data-question", id, data: { question_id: id, kind: "question", prompt: "?", state } });
    const found = questionsOf([message("r1", asked("q1", "pending")), message("r2", asked("q1", "answered"), asked("q2", "pending"))]);
    expect(found.map((one) => [one.question_id, one.state])).toEqual([["q1", "answered"], ["q2", "pending"]]);
  });
  it("shows the newest list of todos, and every run's landing", () => {
    const messages = [message("r1", { type: "data-todos", data: { todos: [1] } }, { type: "data-landing", id: "r1", data: { seq: 1 } }), message("r2", { type: "data-landing", id: "r2", data: { seq: 2 } })];
    expect(latest(messages, "todos")).toEqual({ todos: [1] });
    expect(landingsOf(messages).map((one) => one.runId)).toEqual(["r2", "r1"]);
  });
  it("adds up what it took", () => {
    const spent = { ...message("r1"), metadata: { usage: { input_tokens: 10, output_tokens: 5, cache_read_tokens: 100 }, cost: "0.5" } };
    expect(totalsOf([spent, spent, message("r2")])).toEqual({ tokens: 230, input: 220, output: 10, cost: 1 });
  });
  it("groups todos, in their order or as they came", () => {
    const todo = (todo_id: string, status: string, order?: number) => ({ todo_id, content: todo_id, status, order }) as never;
    const groups = groupedTodos([todo("a", "done", 2), todo("b", "doing", 3), todo("c", "done", 1), todo("d", "todo")]);
    expect(groups.map((group) => [group.status, group.todos.map((one) => one.todo_id).join("")])).toEqual([["doing", "b"], ["todo", "d"], ["done", "ca"]]);
  });
  it("replays a list of todos", () => {
    const event = (position: number, todo_id: string, change: string, status: string) => ({ position, todo_id, change, status, content: todo_id, order: 0 }) as never;
    const events = [event(1, "a", "added", "todo"), event(1, "b", "added", "todo"), event(4, "a", "changed", "done"), event(9, "b", "removed", "todo")];
    const at = (moment: number) => todosAt(events, moment).map((one) => `${one.todo_id}:${one.status}`).join(" ");
    expect(todoMoments(events)).toEqual([1, 4, 9]);
    expect([at(1), at(4), at(9)]).toEqual(["a:todo b:todo", "a:done b:todo", "a:done"]);
  });
  it("names files as the project does", () => {
    expect(projectPath("/workspace/a/b.md")).toBe("a/b.md");
    expect(projectPath("./a.md")).toBe("a.md");
  });
});

describe("the state of an agent", () => {
  it.each([["queued", "stopped"], ["claimed", "stopped"], ["restoring", "restoring"], ["linking", "linking"], ["preparing", "preparing"], ["running", "running"], ["waiting_human", "waiting"], ["syncing", "syncing"], ["exported", "syncing"], ["succeeded", "stopped"], ["canceled", "stopped"], ["failed", "error"], [undefined, "stopped"]])("%s is shown as %s", (state, shown) => {
    expect(agentState(state)).toBe(shown);
  });
  it("has times and counts that are read at a glance", () => {
    expect([formatClock(42_000), formatClock(3_723_000), formatDuration(340), formatDuration(4210), formatDuration(185_000), formatCount(840), formatCount(12_400), formatCount(1_200_000)]).toEqual(["0:42", "1:02:03", "340 ms", "4.2 s", "3 min 5 s", "840", "12.4k", "1.2M"]);
  });
});
