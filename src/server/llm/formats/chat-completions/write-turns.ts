import type { FilePart, ImagePart, Part, ToolCallPart, ToolResultPart, Turn } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { functionArguments } from '../../chat/custom-tools.ts';
import { dataUrl } from '../../chat/data-url.ts';
import { defined } from '../../chat/defined.ts';
import { refusePart } from '../../chat/refusals.ts';
import { partsOfId, plainCallId } from '../../chat/tool-call-id.ts';
import { isText, joinTexts, mergeTurns, refusePrefill, withoutLooseReasoning } from '../../chat/turns.ts';
import { extraContent } from './extra-content.ts';

type Content = readonly Json[] | string;

/**
 * Writes the `messages` after the system message. A content that is only text is written as a string: not every server
 * reads lists, and chat templates do not either.
 */
export function writeTurns(turns: readonly Turn[]): Json[] {
  const merged = mergeTurns(withoutLooseReasoning(turns));
  refusePrefill(merged, 'Chat Completions');
  return merged.flatMap(writeTurn);
}

function writeTurn({ role, name, parts }: Turn): Json[] {
  if (role === 'assistant') return [writeAssistant(parts, name)];
  if (role === 'system') return [defined({ role, name, content: joinTexts(parts.filter(isText)) })];
  const results = parts.filter((part) => part.type === 'toolResult');
  const attached = results.flatMap(attachments);
  const content = writeContent([...attached, ...parts.filter((part) => part.type !== 'toolResult')]);
  const isEmpty = content.length === 0 && results.length > 0;
  return [...results.map(writeResult), ...(isEmpty ? [] : [defined({ role, name, content })])];
}

function writeContent(parts: readonly Part[]): Content {
  return parts.every(isText) ? joinTexts(parts) : parts.map(writePart);
}

function writePart(part: Part): Json {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image':
      return { type: 'image_url', image_url: defined({ url: imageUrl(part), detail: detailOf(part) }) };
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.data, format: part.format } };
    case 'file':
      return { type: 'file', file: writeFile(part) };
    default:
      return refusePart(part, 'only the assistant can send it');
  }
}

function imageUrl(part: ImagePart): string {
  const { source } = part;
  if (source.kind === 'id') return refusePart(part, 'Chat Completions needs the URL or the data of an image');
  return source.kind === 'url' ? source.url : dataUrl(source);
}

function detailOf({ detail }: ImagePart): string | undefined {
  return detail === 'original' ? 'high' : detail;
}

function writeFile(part: FilePart): Json {
  const { source, name } = part;
  switch (source.kind) {
    case 'id':
      return defined({ file_id: source.id, filename: name });
    case 'url':
      return refusePart(part, 'Chat Completions needs the data of a file');
    case 'data':
      return { file_data: dataUrl(source), filename: name ?? FILE_NAME };
    case 'text': {
      const data = Buffer.from(source.text).toString('base64');
      return { file_data: dataUrl({ mediaType: 'text/plain', data }), filename: name ?? TEXT_NAME };
    }
  }
}

/** A name is required with data. */
const FILE_NAME = 'document.pdf';
const TEXT_NAME = 'document.txt';

function writeAssistant(parts: readonly Part[], name: string | undefined): Json {
  const text = joinTexts(parts.filter(isText));
  const refusal = joinTexts(parts.flatMap((part) => (part.type === 'refusal' ? [part.text] : [])));
  // Reasoning goes back only to the servers that made it; others refuse the member or cannot read it.
  const reasoning = joinTexts(
    parts.flatMap((part) => (part.type === 'reasoning' && part.origin === 'completions' ? [part.text] : [])),
  );
  const calls = parts.flatMap((part) => (part.type === 'toolCall' ? [writeCall(part)] : []));
  return defined({
    role: 'assistant',
    name,
    reasoning_content: reasoning === '' ? undefined : reasoning,
    // Null is only allowed next to tool calls or a refusal.
    content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
    refusal: refusal === '' ? undefined : refusal,
    tool_calls: calls.length === 0 ? undefined : calls,
  });
}

function writeCall(call: ToolCallPart): Json {
  const { signature } = partsOfId(call.id);
  return defined({
    id: plainCallId(call.id),
    type: 'function',
    function: { name: call.name, arguments: functionArguments(call) },
    extra_content: signature === undefined ? undefined : extraContent(signature),
  });
}

/** Tool messages contain only text. */
function writeResult({ callId, parts, isError }: ToolResultPart): Json {
  const hasMore = parts.some((part) => !isText(part));
  const texts = [...parts.filter(isText), ...(hasMore ? [ATTACHED] : [])];
  return {
    role: 'tool',
    tool_call_id: plainCallId(callId),
    content: joinTexts(isError === true ? [ERROR, ...texts] : texts),
  };
}

/** What the model reads if a tool failed; Chat Completions and Responses have no member for that. */
const ERROR = 'Error:';

const ATTACHED = 'The next user message contains the rest of this result.';

/** Images and files of a result, for the user message after it. */
function attachments({ callId, parts }: ToolResultPart): Part[] {
  const attached = parts.filter((part) => !isText(part));
  return attached.length === 0 ? [] : [{ type: 'text', text: `Result of tool call ${callId}:` }, ...attached];
}
