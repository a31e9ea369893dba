import { type Members, membersOf } from '../../json-members.ts';
import { forEachNumber, type TextPath } from '../../texts.ts';
import { type EventText, IN_ORDER, indexIn, type StreamFormat, visitOutput } from './stream-format.ts';

/**
 * Streams of `generateContent`: each event is a response with the next parts of its candidates, in order. `finishReason` is
 * no end of a text: some models send it with every event.
 */
export const generateContentEvents: StreamFormat = {
  repeatsTexts: false,
  read(event) {
    const { candidates } = event;
    const texts: EventText[] = [];
    for (const [at, each] of (Array.isArray(candidates) ? (candidates as unknown[]) : []).entries()) {
      const candidate = membersOf(each) ?? {};
      texts.push(...textsOf(candidate, ['candidates', at], indexIn(candidate['index']) ?? at));
    }
    const { candidates: _, ...others } = event;
    visitOutput(others, (text, path) => {
      if (!isHead(path)) texts.push({ part: 'other', path, text });
    });
    const continued = new Set(texts.flatMap(({ channel }) => channel ?? []));
    // The answer after thoughts is another text, and so are thoughts after an answer.
    const ends = [...continued].map(siblingOf).filter((channel) => !continued.has(channel));
    return { texts, ...IN_ORDER, ends };
  },
};

/** Members of every event that describe the response. */
const HEAD = new Set<string | number>(['modelVersion', 'responseId', 'createTime', 'usageMetadata']);

const isHead = ([first]: TextPath): boolean => first !== undefined && HEAD.has(first);

/** The other text of the same candidate. */
function siblingOf(channel: string): string {
  const [index, kind] = channel.split(' ');
  return `${index} ${kind === 'text' ? 'thought' : 'text'}`;
}

/** The texts of a candidate. Those of its text parts continue each other, and so do those of its thoughts. */
function textsOf(candidate: Members, root: TextPath, index: number): EventText[] {
  const texts: EventText[] = [];
  visitOutput(
    candidate,
    (text, path) => {
      const part = partAt(candidate, path.slice(root.length));
      const isThought = part?.['thought'] === true;
      if (part !== undefined && path.at(-1) === 'text')
        texts.push({
          channel: `${index} ${isThought ? 'thought' : 'text'}`,
          part: isThought ? 'reasoning' : 'content',
          path,
          text,
        });
      else texts.push({ part: path.includes('functionCall') ? 'toolCalls' : 'other', path, text });
    },
    undefined,
    root,
  );
  const parts = membersOf(candidate['content'])?.['parts'];
  for (const [at, part] of (Array.isArray(parts) ? (parts as unknown[]) : []).entries())
    forEachNumber(
      membersOf(membersOf(part)?.['functionCall'])?.['args'],
      (text, path) => texts.push({ part: 'toolCalls', path, text }),
      [...root, 'content', 'parts', at, 'functionCall', 'args'],
    );
  return texts;
}

/** The part whose own member is at a path in a candidate: `content.parts[0].text`. */
function partAt(candidate: Members, path: TextPath): Members | undefined {
  const [content, parts, at, ...rest] = path;
  if (content !== 'content' || parts !== 'parts' || rest.length !== 1) return undefined;
  const list = membersOf(candidate['content'])?.['parts'];
  return typeof at === 'number' && Array.isArray(list) ? membersOf(list[at]) : undefined;
}
