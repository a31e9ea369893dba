import type {
  Answer,
  AnswerPart,
  ChatRequest,
  ChatResponse,
  ReasoningPart,
  RefusalPart,
  StopReason,
  ToolCallPart,
} from '../../chat/chat.ts';
import { type Json, Unfinished, Untranslatable } from '../../chat/chat-format.ts';
import { firstMember, isEmpty, objectOf, objectsOf, requiredName, textOf } from '../../chat/event-data.ts';
import { argumentsText, callArguments } from '../../chat/tool-arguments.ts';
import { toolCallId } from '../../chat/tool-call-id.ts';
import { readStop, writeStop } from './stop.ts';
import { writeThoughtSignature } from './thought-signature.ts';
import { readUsage, writeUsage } from './usage.ts';

export function readResponse(body: Json): ChatResponse {
  const { responseId, modelVersion, createTime, candidates } = body;
  const found = objectsOf(candidates);
  const usage = readUsage(body['usageMetadata']);
  const created = typeof createTime === 'string' ? Date.parse(createTime) : Number.NaN;
  return {
    id: textOr(responseId, ''),
    model: textOr(modelVersion, ''),
    ...(Number.isNaN(created) ? {} : { created: Math.floor(created / 1000) }),
    answers: found.length === 0 ? [blocked(body)] : found.map(readAnswer),
    ...(usage === undefined ? {} : { usage }),
  };
}

const textOr = (value: unknown, other: string): string => (typeof value === 'string' ? value : other);

export const isBlocked = ({ promptFeedback }: Json): boolean =>
  textOf(objectOf(promptFeedback)?.['blockReason']) !== undefined;

/** A prompt that was blocked has no candidates. */
function blocked(body: Json): Answer {
  if (!isBlocked(body)) throw new Unfinished('the response has no candidates');
  return { parts: [], stop: 'filter' };
}

function readAnswer({ content, finishReason, finishMessage }: Json): Answer {
  const parts = readParts(objectOf(content)?.['parts']);
  const hasToolCalls = parts.some(({ type }) => type === 'toolCall');
  const stop = readStop(finishReason, finishMessage, hasToolCalls);
  const refusal = refusalOf(stop, finishMessage);
  return { parts: refusal === undefined ? parts : [...parts, refusal], stop };
}

/** Why an answer was filtered, if Google explains it. */
export function refusalOf(stop: StopReason, finishMessage: unknown): RefusalPart | undefined {
  const text = stop === 'filter' ? textOf(finishMessage) : undefined;
  return text === undefined ? undefined : { type: 'refusal', text };
}

/** Reads the parts of an answer; consecutive texts become one, and so do thoughts, up to their signature. */
function readParts(list: unknown): AnswerPart[] {
  const parts: AnswerPart[] = [];
  for (const part of objectsOf(list).flatMap(readPart)) {
    const last = parts.at(-1);
    if (part.type === 'text' && last?.type === 'text')
      parts[parts.length - 1] = { ...last, text: last.text + part.text };
    else if (part.type === 'reasoning' && last?.type === 'reasoning' && last.signature === undefined)
      parts[parts.length - 1] = { ...part, text: last.text + part.text };
    else parts.push(part);
  }
  return parts;
}

/** Refusals are answers without parts. */
export type ReadPart = Exclude<AnswerPart, { type: 'refusal' }>;

/**
 * Reads one part; nothing for one without content, which only carries the signature of a text. Gemini has one content in a
 * part; servers that imitate it have put the text before a call into the call's part. Throws `Untranslatable` for content
 * that other formats cannot express, such as an image or code that ran at the provider.
 */
export function readPart(part: Json): ReadPart[] {
  const { text, thought, functionCall, thoughtSignature } = part;
  if (!isEmpty(functionCall)) {
    const call = readCall(objectOf(functionCall) ?? {}, thoughtSignature);
    return isEmpty(text) ? [call] : [...readPart({ text, thought }), call];
  }
  if (typeof text === 'string' && text !== '')
    return [thought === true ? readThought(text, textOf(thoughtSignature)) : { type: 'text', text }];
  const name = firstMember(part, ['thought', 'thoughtSignature']);
  if (name !== undefined)
    throw new Untranslatable(`candidates[].content.parts[].${name}`, 'other formats have no such content');
  const signature = textOf(thoughtSignature);
  return thought === true && signature !== undefined ? [readThought('', signature)] : [];
}

function readThought(text: string, signature: string | undefined): ReasoningPart {
  return {
    type: 'reasoning',
    text,
    isSummary: true,
    origin: 'generateContent',
    ...(signature === undefined ? {} : { signature }),
  };
}

function readCall({ id, name, args, ...others }: Json, signature: unknown): ToolCallPart {
  // Only sent if the request asks for it, which a translated one does not ("Stream function call arguments", Vertex AI).
  if (!isEmpty(others['partialArgs']) || others['willContinue'] === true)
    throw new Untranslatable('candidates[].content.parts[].functionCall.partialArgs', 'arguments in parts');
  return {
    type: 'toolCall',
    id: toolCallId(textOf(id), textOf(signature)),
    name: requiredName(name, 'candidates[].content.parts[].functionCall.name'),
    arguments: argumentsText(args) || '{}',
  };
}

export function writeResponse(
  { id, model, created, answers, usage }: ChatResponse,
  _request: ChatRequest,
): Json {
  return {
    candidates: answers.map(({ parts, stop }, index) => ({
      content: { role: 'model', parts: parts.flatMap(writePart) },
      finishReason: writeStop(stop),
      index,
    })),
    ...(usage === undefined ? {} : { usageMetadata: writeUsage(usage) }),
    modelVersion: model,
    ...writeCreateTime(created),
    responseId: id,
  };
}

function writePart(part: AnswerPart): Json[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ text: part.text }];
    case 'reasoning':
      return thought(part.text, writeThoughtSignature(part));
    case 'toolCall':
      return [writeCall(part)];
  }
}

function thought(text: string, signature: string | undefined): Json[] {
  if (text === '' && signature === undefined) return [];
  return [{ text, thought: true, ...(signature === undefined ? {} : { thoughtSignature: signature }) }];
}

export function writeCall(call: ToolCallPart): Json {
  const { id, name } = call;
  return { functionCall: { id, name, args: callArguments(call) } };
}

/** RFC 3339; nothing for a number that is not a time. */
export function writeCreateTime(created: number | undefined): Json {
  const time = new Date((created ?? Number.NaN) * 1000);
  return Number.isNaN(time.getTime()) ? {} : { createTime: time.toISOString() };
}
