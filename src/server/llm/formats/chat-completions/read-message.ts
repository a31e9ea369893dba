import { readCacheMark } from '../../chat/cache-mark.ts';
import type {
  FilePart,
  ImagePart,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  Turn,
} from '../../chat/chat.ts';
import { fileData, parseDataUrl } from '../../chat/data-url.ts';
import { defined } from '../../chat/defined.ts';
import { isEmpty } from '../../chat/event-data.ts';
import { splitReasoning } from '../../chat/joined-reasoning.ts';
import type { MemberReader } from '../../chat/member-reader.ts';
import { ASSISTANT_HINTS } from './hints.ts';
import { UNTRANSLATABLE } from './read-response.ts';

/** Reads an element of `messages`. */
export function readMessage(message: MemberReader): Turn {
  const role = message.requiredChoice('role', ['system', 'developer', 'user', 'assistant', 'tool']);
  const name = message.text('name');
  switch (role) {
    case 'system':
    case 'developer':
      return defined({ role: 'system' as const, name, parts: readTexts(message) });
    case 'user':
      return defined({ role, name, parts: message.textOrObjects('content', text, readPart) ?? [] });
    case 'assistant':
      return defined({ role, name, parts: readAssistant(message) });
    case 'tool':
      return { role: 'user', parts: [readResult(message)] };
  }
}

function text(value: string): TextPart {
  return { type: 'text', text: value };
}

function readTexts(message: MemberReader): TextPart[] {
  return message.textOrObjects('content', text, readTextPart) ?? [];
}

function readTextPart(part: MemberReader): TextPart {
  part.only('type', 'text');
  return defined({ ...text(part.requiredText('text')), cache: readCacheMark(part) });
}

function readPart(part: MemberReader): Part {
  switch (part.requiredChoice('type', ['text', 'image_url', 'input_audio', 'file'])) {
    case 'text':
      return readTextPart(part);
    case 'image_url':
      return readImage(part);
    case 'input_audio':
      readCacheMark(part);
      return part.requiredObject('input_audio', (audio) => ({
        type: 'audio',
        format: audio.requiredText('format'),
        data: audio.requiredText('data'),
      }));
    case 'file':
      return readFile(part);
  }
}

function readImage(part: MemberReader): ImagePart {
  const cache = readCacheMark(part);
  return part.requiredObject('image_url', (image) => {
    const url = image.requiredText('url');
    const source = parseDataUrl(url) ?? ({ kind: 'url', url } as const);
    const detail = image.choice('detail', ['auto', 'low', 'high']);
    return defined({ type: 'image' as const, source, detail, cache });
  });
}

function readFile(part: MemberReader): FilePart {
  const cache = readCacheMark(part);
  return part.requiredObject('file', (file) => {
    const [id, data] = [file.text('file_id'), file.text('file_data')];
    const source =
      id === undefined ? fileData(file.required('file_data', data)) : ({ kind: 'id', id } as const);
    return defined({ type: 'file' as const, source, name: file.text('filename'), cache });
  });
}

function readAssistant(message: MemberReader): Part[] {
  message.skip(ASSISTANT_HINTS);
  for (const member of UNTRANSLATABLE) if (!isEmpty(message.value(member))) message.refuse(member);
  const newer = message.text('reasoning');
  const reasoning = message.text('reasoning_content') ?? newer ?? '';
  const state = message.text('reasoning_signature');
  const texts = message.textOrObjects<Part>('content', text, readAssistantPart) ?? [];
  const refusal = message.text('refusal');
  return [
    ...(reasoning === '' && state === undefined ? [] : readReasoning(reasoning, state)),
    ...texts.filter((part) => part.type !== 'text' || part.text !== ''),
    ...(refusal === undefined ? [] : [{ type: 'refusal' as const, text: refusal }]),
    ...message.objects('tool_calls', readCall),
  ];
}

/** `reasoning_signature` is what the gateway wrote into the answer of another provider. */
function readReasoning(text: string, state: string | undefined): ReasoningPart[] {
  return state === undefined
    ? [{ type: 'reasoning', text, origin: 'completions' }]
    : splitReasoning(text, state);
}

function readAssistantPart(part: MemberReader): Part {
  if (part.choice('type', ['text', 'refusal']) === 'refusal')
    return { type: 'refusal', text: part.requiredText('refusal') };
  return readTextPart(part);
}

function readCall(call: MemberReader): ToolCallPart {
  const id = call.requiredText('id');
  // Some clients send the index of the stream's delta back.
  call.skip({ index: 'position in the list' });
  if (call.choice('type', ['function', 'custom']) === 'custom')
    return call.requiredObject('custom', (tool) => ({
      type: 'toolCall',
      id,
      name: tool.requiredText('name'),
      arguments: tool.requiredText('input'),
      isCustom: true,
    }));
  return call.requiredObject('function', (tool) => ({
    type: 'toolCall',
    id,
    name: tool.requiredText('name'),
    arguments: tool.requiredText('arguments'),
  }));
}

function readResult(message: MemberReader): Part {
  return {
    type: 'toolResult',
    callId: message.requiredText('tool_call_id'),
    // OpenAI accepts texts only, but clients send what they have for models that can see it (BerriAI/litellm#16195).
    parts: message.textOrObjects<TextPart | ImagePart | FilePart>('content', text, readResultPart) ?? [],
  };
}

function readResultPart(part: MemberReader): TextPart | ImagePart | FilePart {
  switch (part.requiredChoice('type', ['text', 'image_url', 'file'])) {
    case 'text':
      return readTextPart(part);
    case 'image_url':
      return readImage(part);
    case 'file':
      return readFile(part);
  }
}
