import { elementsOf } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import type { TextPath } from '../../texts.ts';
import { type EventTexts, IN_ORDER, indexIn, type PlacedText } from '../event-texts.ts';

/**
 * Streams of `generateContent`: each event is a response with the next parts of its candidates, in order. `finishReason` is
 * no end of a text: some models send it with every event.
 */
export const generateContentEvents: EventTexts = {
  repeatsTexts: false,
  placeOf: (event, path) => placeOf(elementsOf(event['candidates']), path),
  orderOf(event, texts) {
    const continued = new Set(texts.flatMap(({ channel }) => channel ?? []));
    // The answer after thoughts is another text, and so are thoughts after an answer.
    const ended = [...continued].flatMap(siblingsOf).filter((channel) => !continued.has(channel));
    return { ...IN_ORDER, ends: [...ended, ...endsOf(event)] };
  },
};

/** Texts of a candidate whose parts continue each other, by the member of the part. */
const CONTINUED = new Map([
  ['text', 'text'],
  ['executableCode code', 'code'],
  ['codeExecutionResult output', 'result'],
]);
const KINDS = [...CONTINUED.values(), 'thought'];

/** The other texts of the same candidate, besides arguments of a function, which come in any order. */
function siblingsOf(channel: string): string[] {
  const [index, kind = ''] = channel.split(' ');
  return KINDS.includes(kind) ? KINDS.map((other) => `${index} ${other}`) : [];
}

/**
 * Arguments of a function that are sent in parts, each with the path of its value ("Stream function call arguments" of
 * Vertex AI). All of them have ended when the call does not continue.
 */
function endsOf({ candidates }: Members): string[] {
  return elementsOf(candidates).flatMap((each, at) => {
    const candidate = membersOf(each) ?? {};
    const index = indexIn(candidate['index']) ?? at;
    return partsOf(candidate).flatMap((part): string[] => {
      const call = membersOf(membersOf(part)?.['functionCall']);
      if (call === undefined) return [];
      if (call['willContinue'] !== true) return [`${index} arguments`];
      const values = elementsOf(call['partialArgs']);
      return values
        .map((value) => membersOf(value) ?? {})
        .filter(({ willContinue }) => willContinue !== true)
        .map((value) => argumentChannel(index, value));
    });
  });
}

const argumentChannel = (index: number, { jsonPath }: Members): string =>
  `${index} arguments ${JSON.stringify(jsonPath)}`;

function partsOf(candidate: Members): readonly unknown[] {
  const parts = membersOf(candidate['content'])?.['parts'];
  return elementsOf(parts);
}

/** What a text of a candidate is, and which text it continues. */
function placeOf(candidates: readonly unknown[], [field, at, ...path]: TextPath): PlacedText | undefined {
  if (field !== 'candidates' || typeof at !== 'number') return undefined;
  const candidate = membersOf(candidates[at]) ?? {};
  const index = indexIn(candidate['index']) ?? at;
  if (path[0] === 'logprobsResult') return { channel: `${index} logprobs` };
  const hasLogprobs = membersOf(candidate['logprobsResult']) !== undefined;
  const derived = hasLogprobs ? [{ path: [field, at, 'logprobsResult'], json: 'null' }] : [];
  return { ...placeInCandidate(candidate, path, index), derived };
}

function placeInCandidate(candidate: Members, path: TextPath, index: number): PlacedText {
  const [content, parts, at, ...rest] = path;
  const part =
    content === 'content' && parts === 'parts' ? membersOf(partsOf(candidate)[Number(at)]) : undefined;
  const [owner, list, position, member] = rest;
  if (owner === 'functionCall') {
    if (list !== 'partialArgs' || member !== 'stringValue') return { part: 'toolCalls' };
    const values = elementsOf(membersOf(part?.['functionCall'])?.['partialArgs']);
    const channel = argumentChannel(index, membersOf(values[Number(position)]) ?? {});
    return { part: 'toolCalls', channel, isPlain: true };
  }
  const kind = CONTINUED.get(rest.join(' '));
  if (part === undefined || kind === undefined) return { part: 'other' };
  if (kind !== 'text') return { part: 'other', channel: `${index} ${kind}` };
  return part['thought'] === true
    ? { part: 'reasoning', channel: `${index} thought` }
    : { part: 'content', channel: `${index} text` };
}
