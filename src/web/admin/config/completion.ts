import { autocompletion, type Completion, type CompletionSource } from '@codemirror/autocomplete';
import type { Extension } from '@codemirror/state';
import { type EditorView, hoverTooltip } from '@codemirror/view';
import { ask } from '../../shared/api.ts';
import { type Place, placeAt } from './place.ts';
import { withCode } from './with-code.ts';

/** An answer of `/api/config/schema`. */
interface Hint {
  readonly description?: string;
  readonly keys: readonly {
    readonly name: string;
    readonly description?: string;
    readonly kind: 'mapping' | 'list' | 'value';
  }[];
  readonly values: readonly string[];
}

const known = new Map<string, Promise<Hint>>();

function hintAt(path: Place['path']): Promise<Hint> {
  const text = JSON.stringify(path);
  const hint =
    known.get(text) ?? ask<Hint>(`/api/config/schema?${new URLSearchParams({ path: text }).toString()}`);
  known.set(text, hint);
  // A gateway that did not answer is asked again.
  hint.catch(() => known.delete(text));
  return hint;
}

/** Offers the keys and values that the schema has at the cursor. */
const complete: CompletionSource = async ({ state, pos, explicit }) => {
  const place = placeAt(state.sliceDoc(), pos);
  if (place === undefined || (place.from === pos && !explicit && place.typing === 'key')) return null;
  const { keys, values } = await hintAt(place.path);
  const options: readonly Completion[] =
    place.typing === 'value'
      ? values.map((label) => ({ label }))
      : keys
          .filter(({ name }) => !place.siblings.has(name))
          .map(({ name, description, kind }) => ({
            label: name,
            ...(kind === 'value' ? {} : { detail: kind }),
            ...(description === undefined ? {} : { info: () => withCode(description) }),
            apply: name + ENDS[kind](' '.repeat(place.column)),
          }));
  return options.length === 0 ? null : { from: place.from, options, validFor: /^[\w.-]*$/ };
};

const ENDS = {
  value: () => ': ',
  mapping: (indent: string) => `:\n${indent}  `,
  list: (indent: string) => `:\n${indent}- `,
} as const;

/** Describes the key under the pointer. */
const describe = hoverTooltip(async (view: EditorView, pos: number) => {
  const line = view.state.doc.lineAt(pos);
  const [, before = '', key = ''] = /^( *(?:- +)*)["']?([\w.-]+)["']?:/.exec(line.text) ?? [];
  const from = line.from + before.length;
  if (key === '' || pos < from || pos > from + key.length) return null;
  const place = placeAt(view.state.sliceDoc(), from);
  if (place === undefined) return null;
  const { description } = await hintAt([...place.path, key]).catch(() => ({ description: undefined }));
  if (description === undefined) return null;
  const dom = document.createElement('div');
  dom.className = 'about';
  dom.append(withCode(description));
  return { pos: from, end: from + key.length, above: true, create: () => ({ dom }) };
});

export const completion: Extension = [
  autocompletion({ override: [complete], icons: false, activateOnTyping: true }),
  describe,
];
