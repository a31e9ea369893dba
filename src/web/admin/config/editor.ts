// CodeMirror, and all that needs it: loaded when a page wants an editor. It lives in a shadow root, where its styles
// are adopted style sheets, which the content security policy allows; in the document they would be `<style>` elements.
import { yaml } from '@codemirror/lang-yaml';
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import { unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { theme } from './editor-theme.ts';
import { undoable } from './undo.ts';

/** A place to mark, as offsets into the text. */
export interface Mark {
  readonly from: number;
  readonly to: number;
  readonly severity: 'error' | 'warning';
  readonly message: string;
}

/** What stands at these offsets is replaced. */
export interface Change {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

export interface Editor {
  readonly text: string;
  setText(text: string): void;
  setMarks(marks: readonly Mark[]): void;
  /** Changes the text at offsets of what it is now; one step of undo. */
  change(changes: readonly Change[]): void;
  /** Puts the cursor there and the focus into the editor. */
  goTo(offset: number): void;
  destroy(): void;
}

interface EditorOptions {
  readonly host: HTMLElement;
  readonly text: string;
  /** What it is called for those who cannot see it. */
  readonly label: string;
  readonly changed: (text: string) => void;
}

export function createEditor({ host, text, label, changed }: EditorOptions): Editor {
  const view = open(host, text, label, [
    undoable(),
    lintGutter(),
    drawSelection(),
    keys,
    EditorView.updateListener.of((update) => {
      if (update.docChanged) changed(update.state.doc.toString());
    }),
  ]);
  return {
    get text() {
      return view.state.doc.toString();
    },
    setText: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    setMarks(marks) {
      const { length } = view.state.doc;
      const fitting = marks.map(
        ({ from, to, ...rest }): Diagnostic => ({
          from: Math.min(from, length),
          to: Math.min(Math.max(from, to), length),
          ...rest,
        }),
      );
      view.dispatch(setDiagnostics(view.state, fitting));
    },
    change(changes) {
      view.dispatch({ changes: [...changes] });
      view.focus();
    },
    goTo(offset) {
      const at = Math.min(offset, view.state.doc.length);
      view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: 'center' }) });
      view.focus();
    },
    destroy: () => view.destroy(),
  };
}

/** Shows what differs from one text to another, for reading. Returns what takes it away. */
export function createDiff(host: HTMLElement, label: string, before: string, after: string): () => void {
  const view = open(host, after, label, [
    EditorState.readOnly.of(true),
    unifiedMergeView({
      original: before,
      mergeControls: false,
      syntaxHighlightDeletions: false,
      collapseUnchanged: { margin: 3, minSize: 6 },
    }),
  ]);
  return () => view.destroy();
}

function open(host: HTMLElement, doc: string, label: string, more: Extension): EditorView {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const parent = document.createElement('div');
  root.replaceChildren(parent);
  const extensions = [
    lineNumbers(),
    yaml(),
    theme,
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
    more,
  ];
  return new EditorView({ parent, root, state: EditorState.create({ doc, extensions }) });
}

/** Tab is left to the page, so that the keyboard can leave the editor. */
const keys = keymap.of([
  { key: 'Enter', run: newLine },
  { key: 'Mod-a', run: (view) => select(view, 0, view.state.doc.length) },
  { key: 'Mod-Home', run: (view) => select(view, 0, 0) },
  { key: 'Mod-End', run: (view) => select(view, view.state.doc.length, view.state.doc.length) },
]);

/** A new line begins below the first word of the one before. */
function newLine(view: EditorView): boolean {
  const { state } = view;
  if (state.readOnly) return false;
  const { from } = state.selection.main;
  const line = state.doc.lineAt(from);
  const indent = /^ */.exec(line.text.slice(0, from - line.from))?.[0] ?? '';
  view.dispatch(state.replaceSelection(`\n${indent}`), { scrollIntoView: true, userEvent: 'input' });
  return true;
}

function select(view: EditorView, anchor: number, head: number): boolean {
  view.dispatch({ selection: { anchor, head }, scrollIntoView: true });
  return true;
}
