import {
  Annotation,
  type ChangeSet,
  type EditorSelection,
  type Extension,
  StateField,
  type Transaction,
} from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';

/** Restores an earlier text and selection. */
interface Step {
  readonly changes: ChangeSet;
  readonly selection: EditorSelection;
  readonly at: number;
}

interface History {
  readonly done: readonly Step[];
  readonly undone: readonly Step[];
}

/** Keystrokes within this many ms are undone together. */
const GROUP_WITHIN = 500;
const MOST = 1_000;

const direction = Annotation.define<'undo' | 'redo'>();

const history = StateField.define<History>({
  create: () => ({ done: [], undone: [] }),
  update: (before, transaction) => (transaction.docChanged ? next(before, transaction) : before),
});

function next({ done, undone }: History, transaction: Transaction): History {
  const { changes, startState } = transaction;
  const step = { changes: changes.invert(startState.doc), selection: startState.selection, at: Date.now() };
  const way = transaction.annotation(direction);
  if (way === 'undo') return { done: done.slice(0, -1), undone: [...undone, step] };
  if (way === 'redo') return { done: [...done, step], undone: undone.slice(0, -1) };
  const last = done.at(-1);
  const isTyping = transaction.isUserEvent('input.type') || transaction.isUserEvent('delete');
  if (last !== undefined && isTyping && undone.length === 0 && step.at - last.at < GROUP_WITHIN) {
    const both = { ...last, changes: step.changes.compose(last.changes), at: step.at };
    return { done: [...done.slice(0, -1), both], undone: [] };
  }
  return { done: [...done.slice(-MOST), step], undone: [] };
}

function go(view: EditorView, way: 'undo' | 'redo'): boolean {
  const { done, undone } = view.state.field(history);
  const step = (way === 'undo' ? done : undone).at(-1);
  if (step === undefined || view.state.readOnly) return false;
  view.dispatch({
    changes: step.changes,
    selection: step.selection,
    annotations: direction.of(way),
    userEvent: way,
    scrollIntoView: true,
  });
  return true;
}

const undo = (view: EditorView): boolean => go(view, 'undo');
const redo = (view: EditorView): boolean => go(view, 'redo');

/** Undo and redo for the editor; CodeMirror's implementation is a separate package. */
export function undoable(): Extension {
  return [
    history,
    keymap.of([
      { key: 'Mod-z', run: undo, preventDefault: true },
      { key: 'Mod-y', mac: 'Mod-Shift-z', run: redo, preventDefault: true },
      { key: 'Mod-Shift-z', run: redo, preventDefault: true },
    ]),
    EditorView.domEventHandlers({
      beforeinput(event, view) {
        const { inputType } = event;
        if (inputType === 'historyUndo') return undo(view);
        return inputType === 'historyRedo' && redo(view);
      },
    }),
  ];
}
