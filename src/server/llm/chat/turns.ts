import type { ChatRequest, Part, TextPart, Turn } from './chat.ts';
import { refusePart } from './refusals.ts';

/**
 * Joins neighbouring turns of one participant. Formats differ in where a turn ends: the Responses API has one item per
 * text and tool call, Chat Completions one message per tool result, and the Messages API one message for all of them.
 */
export function mergeTurns(turns: readonly Turn[]): Turn[] {
  const merged: Turn[] = [];
  for (const turn of turns) {
    const last = merged.at(-1);
    if (last !== undefined && last.role === turn.role && last.name === turn.name)
      merged[merged.length - 1] = { ...last, parts: [...last.parts, ...turn.parts] };
    else merged.push(turn);
  }
  return merged;
}

/**
 * The conversation without reasoning that no text or call follows, which is left of an answer that broke off: providers
 * refuse it.
 */
export function withoutLooseReasoning(turns: readonly Turn[]): Turn[] {
  // Formats differ in whether neighbouring turns are one message.
  let isFollowed = false;
  const kept = turns.toReversed().flatMap((turn): Turn[] => {
    if (turn.role !== 'assistant') {
      isFollowed = false;
      return [turn];
    }
    const end = isFollowed ? turn.parts.length : turn.parts.findLastIndex(isContent) + 1;
    isFollowed ||= end > 0;
    const isLoose = turn.parts.slice(end).some(({ type }) => type === 'reasoning');
    if (!isLoose) return [turn];
    return end === 0 ? [] : [{ ...turn, parts: turn.parts.slice(0, end) }];
  });
  return kept.toReversed();
}

const isContent = (part: Part): boolean =>
  part.type !== 'reasoning' && (part.type !== 'text' || part.text.trim() !== '');

/** The parts of one turn for formats whose models want results immediately after their calls: nothing is before them. */
export function resultsFirst(parts: readonly Part[]): readonly Part[] {
  const results = parts.filter(({ type }) => type === 'toolResult');
  return results.length === 0 ? parts : [...results, ...parts.filter(({ type }) => type !== 'toolResult')];
}

/** Separates texts that become one, as paragraphs. */
export const SEPARATOR = '\n\n';

export function joinTexts(texts: readonly (TextPart | string)[]): string {
  return texts
    .map((text) => (typeof text === 'string' ? text : text.text))
    .filter((text) => text !== '')
    .join(SEPARATOR);
}

export function isText(part: Part): part is TextPart {
  return part.type === 'text';
}

/** The conversation, and the instructions before it. */
export function splitSystem(turns: readonly Turn[]): {
  system: readonly TextPart[];
  turns: readonly Turn[];
} {
  const first = turns.findIndex(({ role }) => role !== 'system');
  const start = first === -1 ? turns.length : first;
  return {
    system: turns.slice(0, start).flatMap(({ parts }) => parts.filter(isText)),
    turns: turns.slice(start),
  };
}

/** The request for a format that needs a message of the user: instructions without a conversation are that message. */
export function withUserTurn(request: ChatRequest): ChatRequest {
  const { system, turns } = request;
  if (turns.length > 0 || system.length === 0) return request;
  return { ...request, system: [], turns: [{ role: 'user', parts: system }] };
}

/** For formats whose models answer the beginning of an answer instead of continuing it. */
export function refusePrefill(turns: readonly Turn[], format: string): void {
  const last = turns.at(-1);
  const text = last?.role === 'assistant' ? last.parts.find(isText) : undefined;
  if (text !== undefined) refusePart(text, `${format} cannot continue a message of the assistant`);
}

/** For formats without names of participants. */
export function refuseNames(turns: readonly Turn[], format: string): void {
  for (const turn of turns)
    if (turn.name !== undefined) refusePart(turn, `${format} has no names of participants`, 'name');
}
