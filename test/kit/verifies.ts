import { test } from 'vitest';
import { type RequirementId, requirements } from '../requirements.ts';

/**
 * A test that shows that requirements hold. Ids are written out in the call: `requirements.test.ts` reads them from
 * the text of the file. They end up in the name of the test, so that a failure tells what is no longer true.
 *
 * @throws Error when an id does not exist
 */
export function verifies(
  ids: RequirementId | readonly RequirementId[],
  name: string,
  run: () => void | Promise<void>,
  timeout?: number,
): void {
  const cited = typeof ids === 'string' ? [ids] : ids;
  covers(...cited);
  test(`${name} [${cited.join(' ')}]`, run, timeout);
}

/**
 * Says at the top of a file which requirements its tests show together.
 *
 * @throws Error when an id does not exist
 */
export function covers(...ids: readonly RequirementId[]): void {
  for (const id of ids) {
    if (!Object.hasOwn(requirements, id)) throw new Error(`no such requirement: ${id}`);
  }
}

/** The ids that the text of a test file cites; lines that are comments do not count. */
export function citedIds(text: string): string[] {
  const code = text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '');
  const calls = [
    ...code.matchAll(/\bverifies\(\s*(?:('[^']*')|\[([^\]]*)\])/g),
    ...code.matchAll(/\bcovers\(([^)]*)\)/g),
  ];
  return calls.flatMap(([, ...groups]) =>
    [...groups.join('').matchAll(/'([^']*)'/g)].map(([, id]) => id as string),
  );
}
