import { LIMITS } from '../../../core/limits.ts';
import { llmError } from '../errors.ts';
import { formats } from '../formats/index.ts';
import { type Members, membersOf } from '../json-members.ts';
import { tokenCount } from '../usage.ts';
import type { CallBody } from './call-body.ts';

/** The members that bound what a call costs, of every format, by the member that they are in; '' for the body itself. */
const NUMBERS = new Map<string, { readonly tokens: Set<string>; readonly answers: Set<string> }>();
for (const { numbers } of formats)
  for (const owner of numbers === undefined ? [] : (numbers.inside ?? [''])) {
    const known = NUMBERS.get(owner) ?? { tokens: new Set(), answers: new Set() };
    NUMBERS.set(owner, known);
    for (const name of numbers?.tokens ?? []) known.tokens.add(name);
    for (const name of numbers?.answers ?? []) known.answers.add(name);
  }

/** Members of a body that have these numbers, or the object with them. */
export const NUMBER_FIELDS: readonly string[] = [...NUMBERS].flatMap(([owner, { tokens, answers }]) =>
  owner === '' ? [...tokens, ...answers] : owner,
);

/**
 * Rejects a request whose numbers of tokens or answers are not numbers, such as `1e308` or `"5"`: what providers make of them
 * differs, so a budget would reserve something else than the call may cost. Null counts as absent, as OpenAI has it.
 *
 * @throws AppError (400)
 */
export function checkRequestedNumbers({ value }: CallBody): void {
  for (const [owner, { tokens, answers }] of NUMBERS) {
    const members = owner === '' ? value : membersOf(value[owner]);
    if (members === undefined) continue;
    check(members, tokens, 0, LIMITS.llmRequestedTokens, owner);
    check(members, answers, 1, LIMITS.llmRequestedAnswers, owner);
  }
}

function check(
  members: Members,
  names: ReadonlySet<string>,
  least: number,
  most: number,
  owner: string,
): void {
  for (const name of names) {
    const value = members[name];
    if (value === undefined || value === null) continue;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) continue;
    throw llmError(
      'llm_invalid',
      'invalid_value',
      `\`${owner === '' ? '' : `${owner}.`}${name}\` is not a whole number from ${least} to ${most}`,
    );
  }
}

/** The largest number of `tokens`, or of `answers`, that a request asks for: which one a provider takes is up to it. */
export function largestNumber(body: Pick<CallBody, 'get'>, kind: 'tokens' | 'answers'): number | undefined {
  let largest: number | undefined;
  for (const [owner, numbers] of NUMBERS) {
    const members = owner === '' ? undefined : membersOf(body.get(owner));
    for (const name of numbers[kind]) {
      const count = tokenCount(owner === '' ? body.get(name) : members?.[name]);
      if (count !== undefined) largest = Math.max(largest ?? 0, count);
    }
  }
  return largest;
}
