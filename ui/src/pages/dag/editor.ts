// A read-only view of code, and of the difference of two texts. It is loaded when the first code is shown.
//
// It lives in a shadow root: the page's Content-Security-Policy forbids style elements, and there CodeMirror uses adopted style sheets.
import { python } from "@codemirror/lang-python";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { Decoration, EditorView, keymap, lineNumbers, WidgetType } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export interface CodeOptions {
  /** The element that the view fills. */
  host: HTMLElement;
  text: string;
  python: boolean;
  /** Shows what changed from this text. */
  original: string | null;
  label: string;
  /** The words of the view: its English ones → those of the language. */
  phrases: Record<string, string>;
  /** A line that is marked, from 1. */
  line: number | null;
  /** An error below a line. */
  error: { line: number; text: string } | null;
  /** A click on the number of a line. */
  onLine: (line: number) => void;
}

export interface CodeHandle {
  mark: (line: number | null) => void;
  destroy: () => void;
}

const LOOK = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "12px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px" },
  ".cm-gutters": { color: "var(--muted)", backgroundColor: "var(--surface)", borderRight: "1px solid var(--line)" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "44px", paddingRight: "8px", cursor: "pointer" },
  ".cm-lineNumbers .cm-gutterElement:hover": { color: "var(--accent-text)" },
  ".cm-content": { padding: "8px 0 32px" },
  ".cm-marked": { backgroundColor: "var(--accent-soft)", boxShadow: "inset 3px 0 0 var(--accent)" },
  ".cm-wrong": { backgroundColor: "var(--danger-soft)", boxShadow: "inset 3px 0 0 var(--danger)" },
  ".cm-error": { padding: "6px 12px", color: "var(--danger)", backgroundColor: "var(--danger-soft)", boxShadow: "inset 3px 0 0 var(--danger)", whiteSpace: "pre-wrap", overflowWrap: "anywhere" },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--warn-soft)", outline: "1px solid var(--warn-text)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
  ".cm-panels": { color: "var(--text)", backgroundColor: "var(--bg)", borderBottom: "1px solid var(--line)" },
  ".cm-textfield, .cm-button": { color: "var(--text)", backgroundColor: "var(--surface)", backgroundImage: "none", border: "1px solid var(--edge)", borderRadius: "6px" },
  ".cm-foldPlaceholder": { color: "var(--muted)", backgroundColor: "var(--sunken)", border: "1px solid var(--line)" },
  ".cm-foldGutter .cm-gutterElement": { cursor: "pointer" },
  // What changed inside of a line is underlined: on a darker ground the colours of the code could not be read.
  ".cm-changedLine": { backgroundColor: "color-mix(in srgb, var(--state-success) 16%, transparent) !important" },
  ".cm-changedText": { background: "none !important", boxShadow: "inset 0 -2px 0 var(--state-success)" },
  ".cm-deletedChunk": { backgroundColor: "color-mix(in srgb, var(--state-failed) 14%, transparent) !important", paddingLeft: "6px" },
  ".cm-deletedChunk .cm-deletedText": { background: "none !important", boxShadow: "inset 0 -2px 0 var(--state-failed)" },
  ".cm-changeGutter .cm-changedLineGutter": { backgroundColor: "var(--state-success)" },
  ".cm-changeGutter .cm-deletedLineGutter": { backgroundColor: "var(--state-failed)" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '""' },
  ".cm-collapsedLines": { color: "var(--muted)", background: "var(--sunken)", padding: "4px 12px" },
});

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword, tags.operatorKeyword], color: "var(--accent-text)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--ok-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn-text)" },
  { tag: [tags.comment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className), tags.className], fontWeight: "600" },
  { tag: [tags.meta], color: "var(--warn-text)" },
]);

class ErrorText extends WidgetType {
  constructor(readonly text: string) {
    super();
  }
  override eq(other: ErrorText): boolean {
    return other.text === this.text;
  }
  toDOM(): HTMLElement {
    const box = document.createElement("div");
    box.className = "cm-error";
    box.setAttribute("role", "alert");
    box.textContent = this.text;
    return box;
  }
}

export function showCode({ host, text, python: isPython, original, label, phrases, line, error, onLine }: CodeOptions): CodeHandle {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.replaceChildren();
  const box = document.createElement("div");
  box.style.height = "100%";
  root.append(box);
  const marks = new Compartment();
  const marked = (state: EditorState, wanted: number | null): Extension => {
    const found = [];
    const known = (one: number): boolean => one >= 1 && one <= state.doc.lines;
    if (wanted !== null && known(wanted)) found.push(Decoration.line({ class: "cm-marked" }).range(state.doc.line(wanted).from));
    if (error && known(error.line)) {
      found.push(Decoration.line({ class: "cm-wrong" }).range(state.doc.line(error.line).from));
      found.push(Decoration.widget({ widget: new ErrorText(error.text), block: true, side: 1 }).range(state.doc.line(error.line).to));
    }
    return EditorView.decorations.of(Decoration.set(found, true));
  };
  const blank = EditorState.create({ doc: text });
  const view = new EditorView({
    root,
    parent: box,
    state: EditorState.create({
      doc: text,
      extensions: [
        LOOK,
        EditorState.phrases.of(phrases),
        syntaxHighlighting(COLOURS),
        lineNumbers({
          domEventHandlers: {
            mousedown: (shown, at) => {
              onLine(shown.state.doc.lineAt(at.from).number);
              return true;
            },
          },
        }),
        foldGutter(),
        bracketMatching(),
        highlightSelectionMatches(),
        search({ top: true }),
        keymap.of([...searchKeymap, ...foldKeymap]),
        EditorState.readOnly.of(true),
        EditorView.editable.of(false),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", role: "textbox", "aria-multiline": "true", "aria-readonly": "true" }),
        isPython ? python() : [],
        original === null ? [] : unifiedMergeView({ original, mergeControls: false, gutter: true, highlightChanges: true, collapseUnchanged: { margin: 3, minSize: 6 }, diffConfig: { scanLimit: 2000, timeout: 2000 } }),
        marks.of(marked(blank, line)),
      ],
    }),
  });
  const go = (wanted: number): void => {
    if (wanted <= view.state.doc.lines) view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(wanted).from, { y: "center" }) });
  };
  const first = line ?? error?.line ?? null;
  if (first !== null && first >= 1) requestAnimationFrame(() => go(first));
  return {
    mark: (wanted) => view.dispatch({ effects: marks.reconfigure(marked(view.state, wanted)) }),
    destroy: () => view.destroy(),
  };
}
