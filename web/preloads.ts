// What the page of an address needs first. The server names it in the HTML, so that the browser asks for it at once and
// not only when the code has run that needs it; see interfaces/workbench/build.py.
import type { Plugin, Rolldown } from "vite";

type Page = { path: string; modules: string[]; data: string[] };

// A path is a regular expression for the whole path; {} in an address is what its group matched. An address must be
// written as the page asks for it, or the browser asks twice: browser/sessions.spec.ts sees to that.
const PAGES: Page[] = [
  { path: ".*", modules: [], data: ["/api/v1/me"] },
  {
    path: "/sessions/([0-9a-f-]{36})",
    modules: ["/src/sessions/SessionsLayout.tsx", "/src/sessions/SessionPage.tsx"],
    data: ["/api/v1/sessions/{}", "/api/v1/chat/{}/messages?limit=50"],
  },
];

/** Writes preloads.json beside the page, with the names that the modules have in this build. */
export function preloads(): Plugin {
  return {
    name: "preloads",
    generateBundle(_options, bundle) {
      const chunks = Object.values(bundle).filter((one) => one.type === "chunk");
      const named = PAGES.map((page) => ({ ...page, modules: page.modules.flatMap((source) => needed(chunks, source)) }));
      const once = named.map((page) => ({ ...page, modules: [...new Set(page.modules)] }));
      this.emitFile({ type: "asset", fileName: "preloads.json", source: JSON.stringify(once) });
    },
  };
}

/** The module's chunk and all that it imports, without what every page has already. */
function needed(chunks: Rolldown.OutputChunk[], source: string): string[] {
  const found = chunks.find((chunk) => chunk.facadeModuleId?.endsWith(source));
  if (!found) throw new Error(`There is no chunk of ${source}; see preloads.ts.`);
  const always = new Set(chunks.filter((chunk) => chunk.isEntry).flatMap((chunk) => reached(chunks, chunk.fileName)));
  return reached(chunks, found.fileName).filter((name) => !always.has(name)).map((name) => `/${name}`);
}

function reached(chunks: Rolldown.OutputChunk[], start: string): string[] {
  const names = new Set([start]);
  for (const name of names) chunks.find((chunk) => chunk.fileName === name)?.imports.forEach((one) => names.add(one));
  return [...names];
}
