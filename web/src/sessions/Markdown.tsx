// What an agent or a person wrote, as formatted text. It is hostile input: HTML in it stays text, links lead to pages
// alone and never run anything, and pictures of other servers are links, because loading one tells them who reads.
import { memo, type ReactNode, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { blocksOf, safeUrl } from "./markdownText";

const COMPONENTS: Components = {
  a: ({ href, children }) => (href ? <a href={href} target="_blank" rel="noopener noreferrer nofollow" className="link">{children}</a> : <span>{children}</span>),
  img: ({ src, alt }) => (typeof src === "string" && src ? <a href={src} target="_blank" rel="noopener noreferrer nofollow" className="link">{alt || src}</a> : <span>{alt}</span>),
  pre: ({ children }) => <pre tabIndex={0} className="mono overflow-x-auto rounded-lg border bg-sunken p-3">{children}</pre>,
  table: ({ children }) => <div tabIndex={0} role="group" className="overflow-x-auto"><table>{children}</table></div>,
  input: ({ checked }) => <span aria-hidden>{checked ? "☑ " : "☐ "}</span>,
};
const PLUGINS = [remarkGfm];

const MOST_KEPT = 600;
const kept = new Map<string, ReactNode>();

/** Rendered once, however often it scrolls into sight. */
function rendered(text: string): ReactNode {
  const found = kept.get(text) ?? ReactMarkdown({ children: text, remarkPlugins: PLUGINS, components: COMPONENTS, urlTransform: safeUrl });
  kept.delete(text);
  kept.set(text, found);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value ?? "");
  return found;
}

const Block = memo(function Block({ text }: { text: string }) {
  return rendered(text);
});

/** Whole blocks are rendered once, so that only the last one costs anything while text streams in. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return <div className="prose">{blocks.map((block, index) => <Block key={index} text={block} />)}</div>;
});
