import type {
  FilePart,
  ImagePart,
  Part,
  ReasoningPart,
  TextPart,
  ToolResultPart,
  Turn,
} from '../../chat/chat.ts';
import { Untranslatable } from '../../chat/chat-format.ts';
import { registeredType } from '../../chat/data-url.ts';
import { defined } from '../../chat/defined.ts';
import type { Hints, MemberReader } from '../../chat/member-reader.ts';
import { mergeTurns } from '../../chat/turns.ts';
import { readThoughtSignature } from './thought-signature.ts';
import { isGoogleFile } from './write-request.ts';

const PART_HINTS: Hints = {
  mediaResolution: 'tokens that an image may take',
  partMetadata: 'notes of the client',
};
const BLOB_HINTS: Hints = { displayName: 'name of the file' };
const RESPONSE_HINTS: Hints = {
  scheduling: 'for calls that do not block, which are refused',
  willContinue: 'likewise',
};

/** Reads `contents`. */
export function readContents(members: MemberReader): Turn[] {
  const calls = new OpenCalls();
  const turns = members.objects('contents', (content): Turn => {
    const role = content.choice('role', ['user', 'model', 'function', 'tool']) ?? 'user';
    const parts = content.objects('parts', (part) => readPart(part, calls)).flat();
    return { role: role === 'model' ? 'assistant' : 'user', parts };
  });
  return mergeTurns(turns).map((turn) =>
    turn.role === 'assistant' ? { ...turn, parts: joined(turn.parts) } : turn,
  );
}

/**
 * Joins the texts and the thoughts that follow each other. Clients send the answer of a stream back as it came: a content
 * for each event, and the signature of thoughts after them.
 */
function joined(parts: readonly Part[]): Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (last?.type === 'text' && part.type === 'text')
      all[all.length - 1] = { ...last, text: last.text + part.text };
    else if (last?.type === 'reasoning' && part.type === 'reasoning' && !isSigned(last))
      all[all.length - 1] = { ...last, ...part, text: last.text + part.text };
    else all.push(part);
  }
  return all;
}

const isSigned = ({ signature, encrypted }: ReasoningPart): boolean => (signature ?? encrypted) !== undefined;

function readPart(part: MemberReader, calls: OpenCalls): Part[] {
  part.skip(PART_HINTS);
  const isThought = part.flag('thought') === true;
  // On calls and texts it is for Gemini alone, which gets requests without a translation.
  const signature = part.text('thoughtSignature');
  const text = part.text('text');
  if (isThought) {
    const state = signature === undefined ? {} : readThoughtSignature(signature);
    return [{ type: 'reasoning', text: text ?? '', isSummary: true, origin: 'generateContent', ...state }];
  }
  const found =
    part.object('inlineData', readBlob) ??
    part.object('fileData', readFile) ??
    part.object('functionCall', (call) => {
      const name = call.requiredText('name');
      const args = JSON.stringify(call.json('args') ?? {});
      return { type: 'toolCall' as const, id: calls.opened(name, call.text('id')), name, arguments: args };
    }) ??
    part.object('functionResponse', (response) => readResult(response, calls));
  if (text === undefined) return found === undefined ? [] : [found];
  if (found !== undefined) throw new Untranslatable(`${part.path}.text`, 'a part has only one content');
  return text === '' ? [] : [{ type: 'text', text }];
}

/**
 * ProtoJSON has both alphabets, with padding or without; Google's Python client writes URL-safe Base64. Other APIs refuse
 * that.
 */
function standardBase64(data: string): string {
  const standard = data.replaceAll('-', '+').replaceAll('_', '/');
  return standard.padEnd(Math.ceil(standard.length / 4) * 4, '=');
}

function readBlob(blob: MemberReader): Part {
  blob.skip(BLOB_HINTS);
  const mediaType = registeredType(blob.requiredText('mimeType'));
  const data = standardBase64(blob.requiredText('data'));
  if (mediaType.startsWith('audio/')) return { type: 'audio', format: audioFormat(mediaType), data };
  if (mediaType.startsWith('video/')) blob.refuse('mimeType', 'other formats have no videos');
  return {
    type: mediaType.startsWith('image/') ? 'image' : 'file',
    source: { kind: 'data', mediaType, data },
  };
}

/** `audio/mpeg` and `audio/x-wav` have other names in the formats that have audio. */
const audioFormat = (mediaType: string): string =>
  mediaType
    .slice('audio/'.length)
    .replace(/^mpeg$/, 'mp3')
    .replace(/^(?:x-)?wave?$/, 'wav');

function readFile(file: MemberReader): ImagePart | FilePart {
  file.skip(BLOB_HINTS);
  const uri = file.requiredText('fileUri');
  const mediaType = file.text('mimeType')?.toLowerCase() ?? '';
  if (/^(?:audio|video)\//.test(mediaType))
    file.refuse('mimeType', 'other formats have no such files by URL');
  const source = isGoogleFile(uri)
    ? ({ kind: 'id', id: uri } as const)
    : ({ kind: 'url', url: uri } as const);
  return { type: mediaType.startsWith('image/') ? 'image' : 'file', source };
}

function readResult(response: MemberReader, calls: OpenCalls): ToolResultPart {
  response.skip(RESPONSE_HINTS);
  const name = response.requiredText('name');
  const callId = calls.answered(name, response.text('id'), response.pathOf('name'));
  const value = response.json('response') ?? {};
  const files = response.objects('parts', (part) => {
    const file = part.object('inlineData', readBlob) ?? part.object('fileData', readFile);
    if (file?.type === 'image' || file?.type === 'file') return file;
    throw new Untranslatable(part.path, 'expected an image or a document');
  });
  const texts: TextPart[] = [{ type: 'text', text: resultText(value) }];
  const isError = Object.hasOwn(value, 'error') && Object.keys(value).length === 1;
  return defined({
    type: 'toolResult' as const,
    callId,
    parts: [...texts, ...files],
    isError: isError ? true : undefined,
  });
}

/** `output`, `result` and `error` are the names that Google's documentation and clients use for a result as a whole. */
function resultText(value: Readonly<Record<string, unknown>>): string {
  const [only, ...others] = Object.entries(value);
  if (only === undefined || others.length > 0) return JSON.stringify(value);
  const [name, result] = only;
  if (!['output', 'result', 'error'].includes(name)) return JSON.stringify(value);
  return typeof result === 'string' ? result : JSON.stringify(result);
}

/** Calls without a result so far. Gemini's calls need no ids: a result belongs to the first open call of its function. */
class OpenCalls {
  readonly #open: { readonly name: string; readonly id: string }[] = [];
  #count = 0;

  opened(name: string, given: string | undefined): string {
    this.#count += 1;
    const id = given ?? `call_${this.#count}`;
    this.#open.push({ name, id });
    return id;
  }

  answered(name: string, given: string | undefined, path: string): string {
    const at = this.#open.findIndex((call) => (given === undefined ? call.name === name : call.id === given));
    const [call] = at === -1 ? [] : this.#open.splice(at, 1);
    if (call !== undefined) return call.id;
    throw new Untranslatable(
      `${path}: ${JSON.stringify(name)}`,
      'there is no call that this is the result of',
    );
  }
}
