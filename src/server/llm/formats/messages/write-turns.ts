import type {
  CacheMark,
  FilePart,
  ImagePart,
  Part,
  ReasoningPart,
  Source,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { refuseMember, refusePart } from '../../chat/refusals.ts';
import { callArguments } from '../../chat/tool-arguments.ts';
import {
  isText,
  joinTexts,
  mergeTurns,
  refuseNames,
  resultsFirst,
  withoutLooseReasoning,
} from '../../chat/turns.ts';

/** Writes `messages`: turns of the user and of the assistant in alternation. */
export function writeTurns(turns: readonly Turn[]): Json[] {
  refuseNames(turns, 'the Messages API');
  const merged = writableTurns(turns);
  if (merged.length === 0) refuseMember('turns', 'the Messages API needs a message of the user');
  return merged.map(({ role, parts }) => ({ role, content: writeContent(resultsFirst(parts)) }));
}

/** Turns of the user and of the assistant in alternation, of what Claude accepts. */
export function writableTurns(turns: readonly Turn[]): Turn[] {
  const writable = turns.map(asUserTurn).map(withoutUnwritable);
  return mergeTurns(withoutLooseReasoning(writable).filter(({ parts }) => parts.length > 0));
}

/**
 * Only newer models accept instructions in the middle of a conversation. For all models, they are a marked text of the
 * user, in their place.
 */
export function asUserTurn(turn: Turn): Turn {
  if (turn.role !== 'system') return turn;
  const text = joinTexts(turn.parts.filter(isText));
  return { role: 'user', parts: text === '' ? [] : [{ type: 'text', text: `<system>\n${text}\n</system>` }] };
}

/** Empty texts are refused, and so is the reasoning of other providers. */
function withoutUnwritable(turn: Turn): Turn {
  const parts = turn.parts.filter((part) => {
    if (part.type === 'text' || part.type === 'refusal') return part.text.trim() !== '';
    return part.type !== 'reasoning' || isOwnReasoning(part);
  });
  return { ...turn, parts };
}

/** Bedrock and Vertex serve the same models, and their signatures are valid everywhere. */
function isOwnReasoning({ origin, signature, encrypted }: ReasoningPart): boolean {
  const isClaude = origin === 'messages' || origin === 'converse';
  return isClaude && (signature !== undefined || encrypted !== undefined);
}

/** Whether a tool call after the last message of the user has lost its reasoning. */
export function hasUnsignedCalls(turns: readonly Turn[]): boolean {
  const isMessage = ({ role, parts }: Turn) =>
    role === 'user' && parts.some(({ type }) => type !== 'toolResult');
  const start = turns.findLastIndex(isMessage) + 1;
  const parts = turns.slice(start).flatMap((turn) => (turn.role === 'assistant' ? turn.parts : []));
  const hasReasoning = parts.some((part) => part.type === 'reasoning' && isOwnReasoning(part));
  return parts.some(({ type }) => type === 'toolCall') && !hasReasoning;
}

function writeContent(parts: readonly Part[]): string | Json[] {
  const [first] = parts;
  const isPlain = parts.length === 1 && first !== undefined && isText(first) && first.cache === undefined;
  return isPlain ? first.text : parts.map(writePart);
}

function writePart(part: Part): Json {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'text', text: part.text, ...('cache' in part ? writeCacheMark(part.cache) : {}) };
    case 'image':
      return writeImage(part);
    case 'file':
      return writeFile(part);
    case 'audio':
      return refusePart(part, 'the Messages API has no audio');
    case 'reasoning':
      return writeReasoning(part);
    case 'toolCall':
      return writeCall(part);
    case 'toolResult':
      return writeResult(part);
  }
}

export function writeCacheMark(cache: CacheMark | undefined): Json {
  return cache === undefined ? {} : { cache_control: { type: 'ephemeral', ...cache } };
}

function writeImage({ source, cache }: ImagePart): Json {
  return { type: 'image', source: writeSource(source), ...writeCacheMark(cache) };
}

function writeSource(source: Source): Json {
  switch (source.kind) {
    case 'url':
      return { type: 'url', url: source.url };
    case 'id':
      return { type: 'file', file_id: source.id };
    case 'data':
      return { type: 'base64', media_type: source.mediaType, data: source.data };
  }
}

function writeFile(part: FilePart): Json {
  const { name, cache } = part;
  return defined({
    type: 'document',
    source: writeDocument(part),
    title: name,
    ...writeCacheMark(cache),
  });
}

function writeDocument(part: FilePart): Json {
  const { source } = part;
  if (source.kind === 'text') return { type: 'text', media_type: 'text/plain', data: source.text };
  if (source.kind !== 'data' || source.mediaType === 'application/pdf') return writeSource(source);
  if (!source.mediaType.startsWith('text/'))
    return refusePart(part, `the Messages API has no files of type ${source.mediaType}`);
  const data = Buffer.from(source.data, 'base64').toString('utf8');
  return { type: 'text', media_type: 'text/plain', data };
}

function writeReasoning({ text, signature, encrypted }: ReasoningPart): Json {
  return signature === undefined
    ? { type: 'redacted_thinking', data: encrypted }
    : { type: 'thinking', thinking: text, signature };
}

function writeCall(call: ToolCallPart): Json {
  return {
    type: 'tool_use',
    id: callId(call.id),
    name: call.name,
    input: callArguments(call),
    ...writeCacheMark(call.cache),
  };
}

/** Some models make ids such as `functions.search:0`; here, they consist of letters, digits, `_` and `-`. */
function callId(id: string): string {
  return id.replaceAll(/[^\w-]/g, '_');
}

function writeResult({ callId: id, parts, isError, cache }: ToolResultPart): Json {
  const content = parts.filter((part) => part.type !== 'text' || part.text.trim() !== '');
  return defined({
    type: 'tool_result',
    tool_use_id: callId(id),
    content: content.length === 0 ? undefined : writeContent(content),
    is_error: isError,
    ...writeCacheMark(cache),
  });
}
