import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { preloads } from "./preloads.ts";

const server = process.env.CONTEXTBASE_URL ?? "http://127.0.0.1:8080";

const CORE = /\/web\/src\/(ui\/(basics|dialog|format|toasts|list|table|tabBar)|shell|api|live|text\/(index|en|people\.en|sessions\.en)|mark|([a-z]+\/)+(queries|tabs|pages|matching|states|profiles|firstMessage)\.)|\/node_modules\/(react|react-dom|scheduler|@tanstack\/(?!react-virtual|virtual)[^/]+|lucide-react|openapi-fetch|get-nonce|use-sync-external-store)\//;
const CONVERSATION = /\/web\/src\/sessions\/(Composer|QuestionCard|mentions|panel\/folder|SessionsLayout|History)\./;
const among = (files: RegExp) => (id: string) => files.test(id.replaceAll("\\", "/"));

export default defineConfig({
  plugins: [react(), tailwindcss(), preloads()],
  build: {
    outDir: "../src/contextbase/interfaces/workbench/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: fonts
    chunkSizeWarningLimit: 1200,
    // Every page needs the core, and every page of sessions the conversation's parts: in one file each instead of
    // thirty, each of which costs a request.
    rolldownOptions: { output: { advancedChunks: { groups: [{ name: "core", test: among(CORE), priority: 2 }, { name: "conversation", test: among(CONVERSATION), priority: 1 }] } } },
  },
  server: { proxy: { "/api": server, "/login": server, "/logout": server, "/healthz": server, "/readyz": server } },
  test: { environment: "jsdom", include: ["test/**/*.test.ts", "test/**/*.test.tsx"] },
});
