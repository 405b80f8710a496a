import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env.CONTEXTBASE_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    outDir: "../src/contextbase/interfaces/workbench/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: fonts
    chunkSizeWarningLimit: 1200,
  },
  server: { proxy: { "/api": server, "/login": server, "/logout": server, "/healthz": server, "/readyz": server } },
  test: { environment: "jsdom", include: ["test/**/*.test.ts", "test/**/*.test.tsx"] },
});
