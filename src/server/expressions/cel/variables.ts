import { nearest } from '../../../core/suggest.ts';
import { declarationOf, rootNames } from './declarations.ts';

/**
 * The member that was probably meant, when `member` is not one of what is at `path` but close to one. A name that is
 * close to nothing passes: it reads as a missing key, and a newer upstream may know it.
 */
export function misspelledMember(path: readonly string[], member: string): string | undefined {
  const owner = declarationOf(path);
  if (owner?.members === undefined || Object.hasOwn(owner.members, member)) return undefined;
  if (owner.elsewhere?.includes(member)) return undefined;
  return nearest(member, Object.keys(owner.members));
}

/** What is wrong with a name that is no variable here, in words. */
export function unknownVariable(
  name: string,
  available: readonly string[],
): { message: string; help: string | undefined } {
  const list = available.length === 0 ? undefined : `available here: ${available.join(', ')}`;
  if (rootNames().includes(name))
    return { message: `the variable \`${name}\` is not available here`, help: list };
  const similar = nearest(name, available) ?? nearest(name, rootNames());
  if (similar !== undefined) {
    const where = available.includes(similar) ? '' : ', which is not available here';
    return {
      message: `unknown variable \`${name}\``,
      help: `a variable with a similar name exists: \`${similar}\`${where}`,
    };
  }
  // A bare word is most often a text without its quotes.
  return {
    message: `unknown variable \`${name}\``,
    help: `to write a text, quote it: "${name}"${list === undefined ? '' : `; ${list}`}`,
  };
}
