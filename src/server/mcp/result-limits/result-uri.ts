/**
 * URIs of the parts of kept results: `agctl://results/` with a mark of the gateway, the id of the result and the number of the part.
 * They have no `+`, which would name a target.
 */
export const RESULT_SCHEME = 'agctl://results/';
const ID_AND_PART = /^([\w-]{22})\/(.*)$/s;
const PART = /^[1-9]\d{0,7}$/;

/** `mark`: distinguishes the results of this gateway from those of one that is its target. */
export const resultUri = (mark: string, id: string, part: number): string =>
  `${RESULT_SCHEME}${mark}${id}/${part}`;

/** Reverses `resultUri`; undefined without the mark, such as for a URI of another gateway. A malformed id is empty, a malformed part 0. */
export function readResultUri(uri: string, mark: string): { id: string; part: number } | undefined {
  const start = RESULT_SCHEME + mark;
  if (!uri.startsWith(start)) return undefined;
  const [, id = '', part = ''] = ID_AND_PART.exec(uri.slice(start.length)) ?? [];
  return { id, part: PART.test(part) ? Number(part) : 0 };
}
