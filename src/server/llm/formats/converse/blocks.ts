import { isRecord, jsonIn } from '../../../../core/foreign.ts';
import type {
  CacheMark,
  FilePart,
  ImagePart,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { functionArguments } from '../../chat/custom-tools.ts';
import { refusePart } from '../../chat/refusals.ts';
import { callIdDigest, shortCallId } from '../../chat/tool-call-id.ts';
import type { CachePoints } from './cache-points.ts';

/** Writes content blocks of one message. `names` makes the names of its documents unique, as the API requires. */
export function writeBlocks(parts: readonly Part[], names: DocumentNames, points: CachePoints): Json[] {
  return parts.flatMap((part) => [
    ...writeBlock(part, names),
    ...points(part.type === 'toolResult' ? 'result' : 'block', markOf(part)),
  ]);
}

/** The result of a tool cannot contain a cache mark: one of its parts gets its mark after the result (Portkey-AI/gateway#1762). */
function markOf(part: Part): CacheMark | undefined {
  const cache = 'cache' in part ? part.cache : undefined;
  return (
    cache ?? (part.type === 'toolResult' ? part.parts.findLast((inner) => inner.cache)?.cache : undefined)
  );
}

function writeBlock(part: Part, names: DocumentNames): Json[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      // Blank texts are rejected.
      return part.text.trim() === '' ? [] : [{ text: part.text }];
    case 'image':
      return [image(part)];
    case 'file':
      return [document(part, names)];
    case 'toolCall':
      return [toolUse(part)];
    case 'toolResult':
      return [toolResult(part, names)];
    case 'reasoning':
      return [reasoning(part)];
    case 'audio':
      return refusePart(part, 'Converse has no audio');
  }
}

const IMAGES: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpeg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
]);

function image(part: ImagePart): Json {
  const { source } = part;
  if (source.kind !== 'data') return refusePart(part, 'Bedrock needs the data of an image');
  const format = IMAGES.get(source.mediaType);
  if (format === undefined) return refusePart(part, `Bedrock reads no images of type ${source.mediaType}`);
  return { image: { format, source: { bytes: source.data } } };
}

const DOCUMENTS: ReadonlyMap<string, string> = new Map([
  ['application/pdf', 'pdf'],
  ['text/csv', 'csv'],
  ['application/msword', 'doc'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.ms-excel', 'xls'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
  ['text/html', 'html'],
  ['text/plain', 'txt'],
  ['text/markdown', 'md'],
]);

function document(part: FilePart, names: DocumentNames): Json {
  const { source, name } = part;
  const unique = names.unique(name);
  if (source.kind === 'text')
    return { document: { format: 'txt', name: unique, source: { text: source.text } } };
  if (source.kind !== 'data') return refusePart(part, 'Bedrock needs the data of a file');
  const format = DOCUMENTS.get(source.mediaType);
  if (format === undefined) return refusePart(part, `Bedrock reads no files of type ${source.mediaType}`);
  return { document: { format, name: unique, source: { bytes: source.data } } };
}

/** Names of the documents of a request (Bedrock API reference, "DocumentBlock"). */
export class DocumentNames {
  readonly #used = new Set<string>();

  unique(name = 'document'): string {
    const allowed = name.replaceAll(/[^A-Za-z0-9 ()[\]-]+/g, '-').replaceAll(/ +/g, ' ');
    const base = allowed.slice(0, MAX_NAME).trim() || 'document';
    let found = base;
    for (let count = 2; this.#used.has(found); count += 1) found = `${base} (${count})`;
    this.#used.add(found);
    return found;
  }
}

/** The API allows 200 characters; a number may follow. */
const MAX_NAME = 190;

function toolUse(call: ToolCallPart): Json {
  const text = functionArguments(call);
  const input = text.trim() === '' ? {} : jsonIn(text);
  if (!isRecord(input)) return refusePart(call, 'the arguments are not the JSON text of an object');
  return { toolUse: { toolUseId: toolUseId(call.id), name: call.name, input } };
}

function toolResult({ callId, parts, isError }: ToolResultPart, names: DocumentNames): Json {
  const content = parts.flatMap((part) => writeBlock(part, names));
  return {
    toolResult: {
      toolUseId: toolUseId(callId),
      content: content.length === 0 ? [{ text: '(no output)' }] : content,
      ...(isError === true ? { status: 'error' } : {}),
    },
  };
}

/** Ids of calls of other providers may be longer, or have other characters, than Bedrock allows. */
function toolUseId(id: string): string {
  return /^[\w-]+$/.test(id) ? shortCallId(id) : callIdDigest(id);
}

function reasoning({ text, signature, encrypted }: ReasoningPart): Json {
  return {
    reasoningContent:
      encrypted === undefined ? { reasoningText: { text, signature } } : { redactedContent: encrypted },
  };
}

export function writeSystem(texts: readonly TextPart[], points: CachePoints): Json[] {
  return texts.flatMap(({ text, cache }) =>
    text.trim() === '' ? [] : [{ text }, ...points('system', cache)],
  );
}
