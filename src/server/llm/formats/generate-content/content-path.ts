import { membersOf } from '../../json-members.ts';
import type { TextPath } from '../../texts.ts';

/** Where the texts of a content are, or of an object with one, such as a request in `batchEmbedContents`. */
export function contentPath(item: object): TextPath {
  if ('parts' in item) return ['parts'];
  const isAround = 'content' in item && membersOf(item.content)?.['parts'] !== undefined;
  return isAround ? ['content', 'parts'] : ['content'];
}
