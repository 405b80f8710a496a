import { describe, expect, it } from "vitest";
import { joinConfig, rowsOf, shownValue, splitConfig } from "../src/apps/config";

describe("an app's configuration", () => {
  it("is one row for each value, with the layer it is from", () => {
    const config = { model: "m", limits: { seconds: 5, output_bytes: null }, environment: { A: { secret: "key" }, B: "b" }, skills: ["x"], mcp_servers: { kb: { type: "http", url: "https://kb" } } };
    const provenance = { model: "app", "limits.seconds": "project", "environment.A": "user", "environment.B": "app", skills: "app", "mcp_servers.kb": "project" };
    const rows = rowsOf(config, provenance).map((row) => [row.name, shownValue(row.value).replace(/\s+/g, ""), row.layer]);
    expect(rows).toEqual([
      ["model", "m", "app"],
      ["limits.seconds", "5", "project"],
      ["environment.A", "secret:key", "user"],
      ["environment.B", "b", "app"],
      ["skills", '["x"]', "app"],
      ["mcp_servers.kb", '{"type":"http","url":"https://kb"}', "project"],
    ]);
  });

  it("is the same after it went through the form", () => {
    const config = { provider: "claude", model: "m", limits: { seconds: 5 } };
    const { fields, rest } = splitConfig({ ...config, profile: null });
    expect(joinConfig(fields, rest)).toEqual(config);
    expect(joinConfig({ ...fields, model: "" }, rest)).toEqual({ provider: "claude", limits: { seconds: 5 } });
    for (const wrong of ["{", "[]", "3", "null"]) expect(joinConfig(fields, wrong)).toBeNull();
  });
});
