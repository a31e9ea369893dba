// CodeMirror and everything that requires it, loaded when a page needs an editor. It is in a shadow root, where its
// styles are adopted style sheets, which the content security policy allows; in the document they would be `<style>`
// elements.
import { yaml } from '@codemirror/lang-yaml';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import { unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { completion } from './completion.ts';
import { undoable } from './undo.ts';
import { withCode } from './with-code.ts';
import { wrappedIndent } from './wrapped-indent.ts';

/** A marked range, as offsets into the text. */
export interface Mark {
  readonly from: number;
  readonly to: number;
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
}

/** Replaces the text between these offsets. */
export interface Change {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

export interface Editor {
  readonly text: string;
  setText(text: string): void;
  setMarks(marks: readonly Mark[]): void;
  /** Edits the text at offsets of the current text, as one step of undo. */
  change(changes: readonly Change[]): void;
  /** Moves the cursor to the offset and focuses the editor. */
  goTo(offset: number): void;
  destroy(): void;
}

interface EditorOptions {
  readonly host: HTMLElement;
  readonly text: string;
  /** Name for assistive technology. */
  readonly label: string;
  readonly changed: (text: string) => void;
}

export function createEditor({ host, text, label, changed }: EditorOptions): Editor {
  const view = open(host, text, label, [
    undoable(),
    lintGutter(),
    drawSelection(),
    completion,
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
          renderMessage: () => withCode(rest.message),
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

/** Displays the differences between two texts, read-only. Returns a function that removes it. */
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
    wrappedIndent,
    EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
    more,
  ];
  return new EditorView({ parent, root, state: EditorState.create({ doc, extensions }) });
}

/** Tab is not handled, so that keyboard users can leave the editor. */
const keys = keymap.of([
  { key: 'Enter', run: newLine },
  { key: 'Mod-a', run: (view) => select(view, 0, view.state.doc.length) },
  { key: 'Mod-Home', run: (view) => select(view, 0, 0) },
  { key: 'Mod-End', run: (view) => select(view, view.state.doc.length, view.state.doc.length) },
]);

/** A new line gets the indentation of the previous one. */
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

// The colors of the page. CodeMirror's `data:` images are replaced by text, because the content security policy forbids
// them.
const look = EditorView.theme({
  '&': {
    color: 'var(--text)',
    backgroundColor: 'var(--panel)',
    border: '1px solid var(--edge)',
    borderRadius: '4px',
    maxHeight: 'max(20rem, calc(100dvh - var(--around-editor)))',
  },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '1px' },
  '.cm-scroller': { fontFamily: 'ui-monospace, monospace', fontSize: '13px', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': {
    color: 'var(--quiet)',
    backgroundColor: 'var(--back)',
    borderRight: '1px solid var(--edge)',
  },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '.cm-lintRange': { backgroundImage: 'none', textDecoration: 'underline wavy 1px' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecorationColor: 'var(--bad)' },
  '.cm-lintRange-warning': { backgroundImage: 'none', textDecorationColor: 'var(--warn)' },
  '.cm-lint-marker': { width: '1em', height: 'auto', fontWeight: '700', textAlign: 'center' },
  '.cm-lint-marker-error': { content: 'normal', color: 'var(--bad)' },
  '.cm-lint-marker-warning': { content: 'normal', color: 'var(--warn)' },
  '.cm-lint-marker-error::before': { content: '"✗"' },
  '.cm-lint-marker-warning::before': { content: '"!"' },
  '.cm-tooltip': {
    color: 'var(--text)',
    backgroundColor: 'var(--panel)',
    border: '1px solid var(--edge)',
    maxWidth: 'min(40rem, 80vw)',
  },
  '.cm-tooltip code': { fontFamily: 'ui-monospace, monospace', fontSize: '0.92em' },
  '.cm-tooltip .about': { padding: '0.3rem 0.5rem' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '0.15rem 0.5rem' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    color: 'var(--text)',
    backgroundColor: 'var(--chosen)',
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-completionDetail': { color: 'var(--quiet)' },
  '.cm-completionInfo': { padding: '0.3rem 0.5rem', maxWidth: '22rem' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--warn)' },
  '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'var(--added)' },
  '.cm-deletedChunk, .cm-deletedLine': { backgroundColor: 'var(--removed)' },
  '.cm-changedText, .cm-deletedText, .cm-insertedLine .cm-changedText': {
    background: 'none',
    textDecoration: 'underline 1px',
  },
  '.cm-deletedChunk .cm-deletedText': { background: 'none', textDecoration: 'line-through 1px' },
  '.cm-changeGutter': { width: '1.2em', paddingLeft: '2px' },
  '.cm-changedLineGutter': { background: 'none' },
  '.cm-changedLineGutter::before': { content: '"+"', color: 'var(--good)', fontWeight: '700' },
  '.cm-deletedLineGutter': { background: 'none' },
  '.cm-deletedLineGutter::before': { content: '"−"', color: 'var(--bad)', fontWeight: '700' },
  '.cm-collapsedLines': {
    color: 'var(--accent)',
    background: 'var(--back)',
    border: '1px solid var(--edge)',
  },
});

const words = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--quiet)', fontStyle: 'italic' },
  { tag: [tags.keyword, tags.labelName, tags.typeName], color: 'var(--warn)' },
]);

const theme: Extension = [look, syntaxHighlighting(words)];
