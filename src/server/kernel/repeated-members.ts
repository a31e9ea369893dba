import { AppError } from '../../core/errors.ts';
import { findRepeated, isOver, repeatedMember, shownName, structureOf } from '../../core/json-members.ts';
import { LIMITS } from '../../core/limits.ts';
import { rememberJson } from './parsed-json.ts';
import type { RequestBody } from './request-body.ts';

/**
 * Refuses a JSON body with a member that stands twice in one object, for routes on which an expression of a policy reads
 * the body: the backend may read the other one. Whatever content type the client claims; what is no JSON passes.
 */
export function refuseRepeatedMembers({ captured, prefix }: RequestBody): void {
  const bytes = captured ?? prefix;
  if (bytes === undefined || !beginsLikeJson(bytes)) return;
  const text = bytes.toString('utf8');
  const structure = structureOf(text, LIMITS.jsonDepth, LIMITS.jsonKeys);
  if (isOver(structure, LIMITS.jsonDepth, LIMITS.jsonKeys))
    throw new AppError('bad_request', {
      message: `the request body nests deeper than ${LIMITS.jsonDepth} or has more than ${LIMITS.jsonKeys} members, too many for the rules that read it`,
    });
  const isParsed = captured !== undefined && structure.commas <= LIMITS.jsonItems;
  const name = isParsed ? inWhole(captured, text, structure.members) : findRepeated(text);
  if (name !== undefined)
    throw new AppError('bad_request', {
      message: `the member ${shownName(name)} stands twice in one object of the request body`,
    });
}

function inWhole(bytes: Buffer, text: string, members: number): string | undefined {
  let value: object;
  try {
    value = JSON.parse(text) as object;
  } catch {
    return undefined;
  }
  rememberJson(bytes, value);
  return repeatedMember(text, value, { members });
}

const OPENING: ReadonlySet<number | undefined> = new Set([0x5b, 0x7b]);

/** Whether an object or list follows the white space of RFC 8259 §2. */
function beginsLikeJson(bytes: Buffer): boolean {
  let at = 0;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return OPENING.has(bytes[at]);
}
