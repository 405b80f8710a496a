import { css } from "@codemirror/lang-css";
import { html } from "@codemirror/lang-html";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { markdown } from "@codemirror/lang-markdown";
import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import type { Extension } from "@codemirror/state";

const BY_ENDING: Record<string, () => Extension> = {
  css, html, htm: html, svg: html, xml: html, vue: html,
  js: javascript, mjs: javascript, jsx: () => javascript({ jsx: true }),
  ts: () => javascript({ typescript: true }), tsx: () => javascript({ typescript: true, jsx: true }),
  json, ipynb: json, jsonl: json, md: markdown, markdown, py: python, pyi: python, yaml, yml: yaml,
};

/** How a file is coloured; plain text where nothing is known. */
export function languageFor(path: string): Extension {
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return BY_ENDING[ending]?.() ?? [];
}
