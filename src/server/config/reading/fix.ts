import type { Fix, Path } from '../../../core/diagnostic.ts';
import type { YamlSource } from '../../../core/yaml/source.ts';

/** An automatic fix, before it has a place in the text. */
export type Remedy =
  | { readonly kind: 'rename'; readonly to: string }
  | { readonly kind: 'replace'; readonly by: string }
  | { readonly kind: 'quote' }
  | { readonly kind: 'unquote' };

/** The edit that applies `remedy` at `path`, or undefined if the text there is not a plain value. */
export function fixFor(remedy: Remedy, path: Path, source: YamlSource): Fix | undefined {
  const range = remedy.kind === 'rename' ? source.keyRange(path) : source.valueRange(path);
  const { start, end } = range;
  const written = source.text.slice(start.offset, end.offset);
  // Aliases, anchors, tags and variables refer to something else; block scalars have their own syntax.
  if (/^[*&!|>]|[\n$]/.test(written) || written === '') return undefined;
  const quote = /^(["']).*\1$/.exec(written)?.[1];
  switch (remedy.kind) {
    case 'rename':
      return { title: `write \`${remedy.to}\``, edits: [{ range, text: remedy.to }] };
    case 'replace':
      return { title: `write \`${remedy.by}\``, edits: [{ range, text: scalar(remedy.by) }] };
    case 'quote': {
      if (quote !== undefined || /["\\]/.test(written)) return undefined;
      const at = ({ offset }: { readonly offset: number }) => source.range(offset, offset);
      return {
        title: 'put it in quotes',
        edits: [
          { range: at(start), text: '"' },
          { range: at(end), text: '"' },
        ],
      };
    }
    case 'unquote': {
      if (quote === undefined) return undefined;
      const without = (from: number) => ({ range: source.range(from, from + 1), text: '' });
      return { title: 'remove the quotes', edits: [without(start.offset), without(end.offset - 1)] };
    }
  }
}

/** Formats one of our texts as YAML, quoted unless it is plainly a word. */
function scalar(text: string): string {
  const isWord = /^[A-Za-z][\w./-]*$/.test(text) && !/^(?:null|y|n|yes|no|on|off)$/i.test(text);
  return isWord ? text : JSON.stringify(text);
}
