import type {
  FilePart,
  ImagePart,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { functionArguments } from '../../chat/custom-tools.ts';
import { dataUrl } from '../../chat/data-url.ts';
import { defined } from '../../chat/defined.ts';
import { refusePart } from '../../chat/refusals.ts';
import { plainCallId } from '../../chat/tool-call-id.ts';
import { isText, joinTexts, refuseNames, refusePrefill, withoutLooseReasoning } from '../../chat/turns.ts';

/** What the model reads if a tool failed; there is no member for that. */
const ERROR = 'Error:';

/** Writes the items of `input`. */
export function writeInput(turns: readonly Turn[]): Json[] {
  refuseNames(turns, 'the Responses API');
  refusePrefill(turns, 'the Responses API');
  const customCalls = new Set(turns.flatMap(({ parts }) => parts.filter(isCustomCall)).map(({ id }) => id));
  return withoutLooseReasoning(turns).flatMap((turn) => writeTurn(turn, customCalls));
}

function isCustomCall(part: Part): part is ToolCallPart {
  return part.type === 'toolCall' && part.isCustom === true;
}

/** A message of neighbouring texts, images and files; an item for each tool call, result and reasoning. */
function writeTurn({ role, parts }: Turn, customCalls: ReadonlySet<string>): Json[] {
  if (role === 'system') return [message('developer', joinTexts(parts.filter(isText)))];
  const items: Json[] = [];
  let content: Json[] = [];
  const flush = () => {
    if (content.length > 0) items.push(message(role, content));
    content = [];
  };
  for (const part of parts) {
    const item = writeItem(part, customCalls);
    if (item === undefined) content.push(role === 'user' ? writeContent(part) : writeAssistantContent(part));
    else {
      flush();
      items.push(...item);
    }
  }
  flush();
  return items;
}

function message(role: string, content: string | readonly Json[]): Json {
  return { type: 'message', role, content };
}

/** The item of a part, if it is not in the content of a message. */
function writeItem(part: Part, customCalls: ReadonlySet<string>): Json[] | undefined {
  switch (part.type) {
    case 'toolCall':
      return [
        part.isCustom === true
          ? {
              type: 'custom_tool_call',
              call_id: plainCallId(part.id),
              name: part.name,
              input: part.arguments,
            }
          : {
              type: 'function_call',
              call_id: plainCallId(part.id),
              name: part.name,
              arguments: functionArguments(part),
            },
      ];
    case 'toolResult':
      return [writeResult(part, customCalls.has(part.callId))];
    case 'reasoning':
      return writeReasoning(part);
    default:
      return undefined;
  }
}

/**
 * Only reasoning that can be read without storage. Its id is that of a stored item, so it is left out: without storage, OpenAI does not find
 * it (NousResearch/hermes-agent#10217), and refuses an id other than that of the text (maximhq/bifrost#5186), but takes none (vercel/ai#12869).
 */
function writeReasoning({ text, encrypted, origin }: ReasoningPart): Json[] {
  if (origin !== 'responses' || encrypted === undefined) return [];
  const summary = text === '' ? [] : [{ type: 'summary_text', text }];
  return [{ type: 'reasoning', summary, encrypted_content: encrypted }];
}

function writeContent(part: Part): Json {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image':
      return writeImage(part);
    case 'file':
      return writeFile(part);
    case 'audio':
      return refusePart(part, 'the Responses API has no audio');
    default:
      return refusePart(part, 'only the assistant can send it');
  }
}

function writeAssistantContent(part: Part): Json {
  switch (part.type) {
    case 'text':
      return { type: 'output_text', text: part.text };
    case 'refusal':
      return { type: 'refusal', refusal: part.text };
    default:
      return refusePart(part, 'the assistant cannot send it');
  }
}

function writeImage({ source, detail }: ImagePart): Json {
  const reference =
    source.kind === 'id'
      ? { file_id: source.id }
      : { image_url: source.kind === 'url' ? source.url : dataUrl(source) };
  return { type: 'input_image', ...reference, ...(detail === undefined ? {} : { detail }) };
}

function writeFile({ source, name }: FilePart): Json {
  switch (source.kind) {
    case 'id':
      return { type: 'input_file', file_id: source.id };
    case 'url':
      return defined({ type: 'input_file', file_url: source.url });
    case 'data':
      return { type: 'input_file', file_data: dataUrl(source), filename: name ?? 'document.pdf' };
    case 'text': {
      const data = Buffer.from(source.text).toString('base64');
      const file = dataUrl({ mediaType: 'text/plain', data });
      return { type: 'input_file', file_data: file, filename: name ?? 'document.txt' };
    }
  }
}

/** Chat Completions does not say whether a result is one of a custom tool; this API insists on it. */
function writeResult({ callId, parts, isError }: ToolResultPart, isCustom: boolean): Json {
  const all = isError === true ? [{ type: 'text' as const, text: ERROR }, ...parts] : parts;
  return {
    type: isCustom ? 'custom_tool_call_output' : 'function_call_output',
    call_id: plainCallId(callId),
    output: all.every((part): part is TextPart => isText(part)) ? joinTexts(all) : all.map(writeContent),
  };
}
