import { isUtf8 } from 'node:buffer';
import { AppError } from '../../../core/errors.ts';
import { jsonIn } from '../../../core/foreign.ts';
import { findRepeated, isOver, repeatedMember, shownName, structureOf } from '../../../core/json-members.ts';
import { LIMITS } from '../../../core/limits.ts';
import { type RequestBody, rememberJson } from '../request/request-body.ts';

/**
 * Rejects a JSON body with a repeated member in one object, for routes on which an expression of a policy reads the body:
 * the backend may use the other one of the two. Ignores the content type; a body that is not JSON passes.
 *
 * @throws AppError `bad_request`, also for a body over `LIMITS.jsonDepth` or `LIMITS.jsonKeys`
 */
export function rejectRepeatedMembers({ captured, prefix }: Pick<RequestBody, 'captured' | 'prefix'>): void {
  const bytes = captured ?? prefix;
  if (bytes === undefined || !beginsLikeJson(bytes)) return;
  const text = bytes.toString('utf8');
  const structure = structureOf(text, LIMITS.jsonDepth, LIMITS.jsonKeys);
  if (isOver(structure, LIMITS.jsonDepth, LIMITS.jsonKeys))
    throw new AppError('bad_request', {
      message: `the request body nests deeper than ${LIMITS.jsonDepth} or has more than ${LIMITS.jsonKeys} members, which is over the limit for rules that read it`,
    });
  const isParsed = captured !== undefined && structure.commas <= LIMITS.jsonItems;
  const name = isParsed ? repeatedInParsed(captured, text, structure.members) : findRepeated(text);
  if (name !== undefined)
    throw new AppError('bad_request', {
      message: `the member ${shownName(name)} is repeated in one object of the request body`,
    });
}

function repeatedInParsed(bytes: Buffer, text: string, members: number): string | undefined {
  const value = jsonIn(text);
  // Of a text that begins like an object or a list.
  if (typeof value !== 'object' || value === null) return undefined;
  // With replacement characters, rules would read another text than the backend gets.
  if (isUtf8(bytes)) rememberJson(bytes, value);
  return repeatedMember(text, value, { members });
}

const OPENING: ReadonlySet<number | undefined> = new Set([0x5b, 0x7b]);

/** Whether the text starts with an object or array, after white space (RFC 8259 §2). */
function beginsLikeJson(bytes: Buffer): boolean {
  let at = 0;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return OPENING.has(bytes[at]);
}
