// Text with line numbers, colours, links to lines, and who wrote each line; the same part edits it.
import { EditorState, type Extension, RangeSetBuilder, StateField } from "@codemirror/state";
import { Decoration, EditorView, gutter, GutterMarker, keymap, lineNumbers, drawSelection, highlightActiveLine } from "@codemirror/view";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { languageFor } from "./languages";

export type BlameLine = { label: string; title: string; isFirst: boolean };

type Props = {
  text: string;
  path: string;
  label: string;
  lines?: [number, number];
  blame?: BlameLine[];
  editable?: boolean;
  onLine?: (line: number, extend: boolean) => void;
  onChange?: (text: string) => void;
  onSave?: () => void;
  onEscape?: () => void;
};

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "12.5px", backgroundColor: "transparent", color: "var(--text)" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "20px" },
  "&.cm-focused": { outline: "none" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "44px", padding: "0 12px 0 8px", cursor: "pointer" },
  ".cm-lineNumbers .cm-gutterElement:hover": { color: "var(--text)" },
  ".cm-linked": { backgroundColor: "var(--accent-soft)" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "var(--hover)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent) !important" },
  ".cm-blame": { borderRight: "1px solid var(--line)" },
  ".cm-blame .cm-gutterElement": { padding: "0 10px 0 12px", maxWidth: "min(190px, 30vw)", width: "min(190px, 30vw)", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap", fontFamily: "var(--font-sans)", fontSize: "12px", textAlign: "right" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
  ".cm-searchMatch": { backgroundColor: "var(--waiting-soft)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--merged)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--written)" },
  { tag: [tags.comment, tags.meta], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--waiting)" },
  { tag: [tags.propertyName, tags.attributeName, tags.labelName], color: "var(--accent)" },
  { tag: [tags.function(tags.variableName), tags.typeName, tags.className, tags.tagName], color: "var(--accent)" },
  { tag: tags.heading, fontWeight: "600" },
  { tag: tags.strong, fontWeight: "600" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: [tags.link, tags.url], color: "var(--accent)" },
  { tag: tags.invalid, color: "var(--refused)" },
]);

class BlameMarker extends GutterMarker {
  constructor(private readonly line: BlameLine) {
    super();
  }
  override eq(other: BlameMarker): boolean {
    return other.line.label === this.line.label && other.line.isFirst === this.line.isFirst;
  }
  override toDOM(): Node {
    const element = document.createElement("span");
    element.textContent = this.line.isFirst ? this.line.label : "";
    element.title = this.line.title;
    return element;
  }
}

function blameGutter(blame: BlameLine[]): Extension {
  return gutter({
    class: "cm-blame",
    lineMarker: (view, block) => {
      const line = blame[view.state.doc.lineAt(block.from).number - 1];
      return line ? new BlameMarker(line) : null;
    },
  });
}

function linked([first, last]: [number, number]): Extension {
  return StateField.define({
    create(state) {
      const builder = new RangeSetBuilder<Decoration>();
      for (let line = first; line <= Math.min(last, state.doc.lines); line++) {
        const at = state.doc.line(line).from;
        builder.add(at, at, Decoration.line({ class: "cm-linked" }));
      }
      return builder.finish();
    },
    update: (value, transaction) => value.map(transaction.changes),
    provide: (field) => EditorView.decorations.from(field),
  });
}

export default function CodeView({ text, path, label, lines, blame, editable, onLine, onChange, onSave, onEscape }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const handlers = useRef({ onLine, onChange, onSave, onEscape });
  useEffect(() => {
    handlers.current = { onLine, onChange, onSave, onEscape };
  });
  const [first, last] = lines ?? [0, 0];
  useEffect(() => {
    if (!box.current) return;
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
    const extensions: Extension[] = [
      EditorView.cspNonce.of(nonce),
      lineNumbers({
        domEventHandlers: {
          mousedown(view, block, event) {
            handlers.current.onLine?.(view.state.doc.lineAt(block.from).number, (event as MouseEvent).shiftKey);
            return true;
          },
        },
      }),
      drawSelection(),
      bracketMatching(),
      highlightSelectionMatches(),
      search({ top: true }),
      syntaxHighlighting(colours),
      languageFor(path),
      theme,
      EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": editable ? "false" : "true" }),
      EditorState.readOnly.of(!editable),
      keymap.of([
        { key: "Mod-s", preventDefault: true, run: () => (handlers.current.onSave?.(), true) },
        { key: "Escape", run: () => (handlers.current.onEscape ? (handlers.current.onEscape(), true) : false) },
        ...(editable ? [...defaultKeymap, ...historyKeymap, indentWithTab] : []),
        ...searchKeymap,
      ]),
    ];
    if (blame) extensions.unshift(blameGutter(blame));
    if (first > 0 && !editable) extensions.push(linked([first, last]));
    if (editable) {
      extensions.push(history(), highlightActiveLine(), EditorView.lineWrapping);
      extensions.push(EditorView.updateListener.of((update) => update.docChanged && handlers.current.onChange?.(update.state.doc.toString())));
    } else extensions.push(EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: "0", role: "textbox", "aria-multiline": "true" }));
    const view = new EditorView({ parent: box.current, state: EditorState.create({ doc: text, extensions }) });
    if (editable) view.focus();
    else if (first > 0 && first <= view.state.doc.lines) {
      view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(first).from, { y: "center" }) });
    }
    return () => view.destroy();
  }, [text, path, label, first, last, blame, editable]);
  return <div ref={box} className="h-full min-h-0 overflow-hidden" data-testid="code" />;
}
