import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

// The colors of the page. CodeMirror's `data:` images are replaced by text, because the content security policy forbids
// them.
const look = EditorView.theme({
  '&': {
    color: 'var(--text)',
    backgroundColor: 'var(--panel)',
    border: '1px solid var(--edge)',
    borderRadius: '4px',
    maxHeight: '60vh',
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

export const theme: Extension = [look, syntaxHighlighting(words)];
