import { type Extension, RangeSetBuilder } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, ViewPlugin, type ViewUpdate } from '@codemirror/view';

/** Deeper lines are indented by this where they are wrapped, so that room is left on a phone. In characters. */
const DEEPEST = 24;
/** Padding of a line of CodeMirror, in pixels. */
const PADDING = 6;

/** By class, because the content security policy allows no style attributes. */
const rules = EditorView.theme(
  Object.fromEntries(
    Array.from({ length: DEEPEST }, (_, index) => index + 1).map((indent) => [
      `.cm-line.cm-indent-${indent}`,
      { paddingLeft: `calc(${PADDING}px + ${indent}ch)`, textIndent: `-${indent}ch` },
    ]),
  ),
);

const decorations = Array.from({ length: DEEPEST + 1 }, (_, indent) =>
  Decoration.line({ class: `cm-indent-${indent}` }),
);

/** The indentation of a line: where the text of a list item or of a comment begins, too. */
const indentOf = (text: string): number => /^ *(?:(?:- +)+|# *)?/.exec(text)?.[0].length ?? 0;

function decorate(view: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to; ) {
      const line = view.state.doc.lineAt(at);
      const decoration = decorations[Math.min(DEEPEST, indentOf(line.text))];
      if (decoration !== undefined) builder.add(line.from, line.from, decoration);
      at = line.to + 1;
    }
  }
  return builder.finish();
}

/** The parts of a wrapped line keep its indentation: in YAML, a part at the margin looks like another key. */
export const wrappedIndent: Extension = [
  rules,
  ViewPlugin.fromClass(
    class {
      shown: DecorationSet;

      constructor(view: EditorView) {
        this.shown = decorate(view);
      }

      update({ docChanged, viewportChanged, view }: ViewUpdate): void {
        if (docChanged || viewportChanged) this.shown = decorate(view);
      }
    },
    { decorations: ({ shown }) => shown },
  ),
];
