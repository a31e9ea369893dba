import { type Edit, edit, elements, valueAt } from '../kernel/json-text.ts';
import { outwardName } from './names.ts';

/** Converts resource URIs in a result (contents, links, embedded resources) to those with which clients can read them. */
export function outwardUris(text: string, target: string): string {
  // Most results contain none, and a search is cheaper than parsing.
  if (!text.includes('"uri"')) return text;
  const edits: Edit[] = [];
  const rename = (path: readonly string[], base: { start: number; end: number }): void => {
    const item = text.slice(base.start, base.end);
    const span = valueAt(item, path);
    if (span === undefined || item[span.start] !== '"') return;
    const uri = JSON.parse(item.slice(span.start, span.end)) as string;
    edits.push({
      start: base.start + span.start,
      end: base.start + span.end,
      text: JSON.stringify(outwardName('resource', target, uri)),
    });
  };
  for (const item of itemsAt(text, ['result', 'contents'])) rename(['uri'], item);
  for (const item of itemsAt(text, ['result', 'content'])) renameContent(text, item, rename);
  for (const item of itemsAt(text, ['result', 'messages'])) {
    const content = valueAt(text.slice(item.start, item.end), ['content']);
    if (content !== undefined)
      renameContent(text, { start: item.start + content.start, end: item.start + content.end }, rename);
  }
  return edit(text, edits);
}

function renameContent(
  text: string,
  item: { start: number; end: number },
  rename: (path: readonly string[], base: typeof item) => void,
): void {
  const content = text.slice(item.start, item.end);
  const typeSpan = valueAt(content, ['type']);
  const type = typeSpan && content.slice(typeSpan.start, typeSpan.end);
  if (type === '"resource_link"') rename(['uri'], item);
  else if (type === '"resource"') rename(['resource', 'uri'], item);
}

function itemsAt(text: string, path: readonly string[]): { start: number; end: number }[] {
  const span = valueAt(text, path);
  return span !== undefined && text[span.start] === '[' ? elements(text, span.start) : [];
}
