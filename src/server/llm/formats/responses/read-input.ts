import { readCacheMark } from '../../chat/cache-mark.ts';
import type {
  FilePart,
  ImagePart,
  Part,
  ReasoningPart,
  Source,
  TextPart,
  Tool,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../chat/chat.ts';
import { nameInNamespace } from '../../chat/client-tools.ts';
import { fileData, parseDataUrl } from '../../chat/data-url.ts';
import { defined } from '../../chat/defined.ts';
import type { MemberReader } from '../../chat/member-reader.ts';
import { unpackReasoning } from '../../chat/reasoning-state.ts';
import { ITEM_HINTS, TEXT_HINTS } from './hints.ts';
import { readFoundTool, SEARCH } from './read-tools.ts';

/** Reads `input`: a text of the user or a list of items. Some items contain tools that the model can use from then on. */
export function readInput(members: MemberReader): { turns: readonly Turn[]; tools: readonly Tool[] } {
  const tools: Tool[] = [];
  const input = members.textOrObjects<Turn>(
    'input',
    (text) => ({ role: 'user', parts: [plainText(text)] }),
    (item) => readItem(item, tools),
  );
  const turns = members.required('input', input).filter(({ parts }) => parts.length > 0);
  return { turns, tools };
}

const ITEMS = [
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'reasoning',
  'tool_search_call',
  'tool_search_output',
  'additional_tools',
  'agent_message',
] as const;

/** Adds the tools in an item to `tools`. */
function readItem(item: MemberReader, tools: Tool[]): Turn {
  const type = item.choice('type', ITEMS) ?? 'message';
  item.skip(ITEM_HINTS);
  switch (type) {
    case 'message':
      return readMessage(item);
    case 'reasoning':
      return { role: 'assistant', parts: [readReasoning(item)] };
    case 'function_call':
    case 'custom_tool_call':
      return { role: 'assistant', parts: [readCall(item, type === 'custom_tool_call')] };
    case 'function_call_output':
    case 'custom_tool_call_output':
      return { role: 'user', parts: [readResult(item, type === 'custom_tool_call_output')] };
    case 'tool_search_call':
      return { role: 'assistant', parts: [readSearchCall(item)] };
    case 'tool_search_output':
      return { role: 'user', parts: [readSearchResult(item, tools)] };
    case 'additional_tools':
      item.only('role', 'developer');
      tools.push(...item.objects('tools', readFoundTool).flat());
      return { role: 'system', parts: [] };
    case 'agent_message':
      return readAgentMessage(item);
  }
}

function plainText(text: string): TextPart {
  return { type: 'text', text };
}

function readMessage(item: MemberReader): Turn {
  const role = item.requiredChoice('role', ['user', 'assistant', 'system', 'developer']);
  const parts = item.textOrObjects<Part>('content', plainText, readPart) ?? [];
  return { role: role === 'developer' ? 'system' : role, parts };
}

/** What an agent of Codex tells another one (`multi_agent_v2`). Its text says who sent it. */
function readAgentMessage(item: MemberReader): Turn {
  item.text('author');
  item.text('recipient');
  return { role: 'user', parts: item.textOrObjects<Part>('content', plainText, readAgentPart) ?? [] };
}

/** Codex sends as encrypted what the model wrote, but only OpenAI's models encrypt it, as a Fernet token (openai/codex#33551). */
function readAgentPart(part: MemberReader): Part {
  if (part.choice('type', [...PARTS, 'encrypted_content']) !== 'encrypted_content') return readPart(part);
  const text = part.requiredText('encrypted_content');
  if (text.startsWith('gAAAA')) part.refuse('encrypted_content', 'only OpenAI can read it');
  return plainText(text);
}

const PARTS = ['input_text', 'output_text', 'text', 'refusal', 'input_image', 'input_file'] as const;

function readPart(part: MemberReader): Part {
  const type = part.requiredChoice('type', PARTS);
  if (type === 'refusal') return { type, text: part.requiredText('refusal') };
  if (type === 'input_image' || type === 'input_file') return readAttachment(part, type);
  part.skip(TEXT_HINTS);
  return defined({ ...plainText(part.requiredText('text')), cache: readCacheMark(part) });
}

function readAttachment(part: MemberReader, type: 'input_image' | 'input_file'): ImagePart | FilePart {
  return type === 'input_image' ? readImage(part) : readFile(part);
}

function readImage(part: MemberReader): ImagePart {
  const [url, id] = [part.text('image_url'), part.text('file_id')];
  const source: Source =
    url === undefined
      ? { kind: 'id', id: part.required('image_url', id) }
      : (parseDataUrl(url) ?? { kind: 'url', url });
  const detail = part.choice('detail', ['auto', 'low', 'high', 'original']);
  return defined({ type: 'image' as const, source, detail, cache: readCacheMark(part) });
}

function readFile(part: MemberReader): FilePart {
  part.skip({ detail: 'resolution of the pages' });
  const [id, url, data] = [part.text('file_id'), part.text('file_url'), part.text('file_data')];
  const name = part.text('filename');
  return defined({
    type: 'file' as const,
    source: readSource(part, id, url, data),
    name,
    cache: readCacheMark(part),
  });
}

function readSource(part: MemberReader, id?: string, url?: string, data?: string): Source {
  if (id !== undefined) return { kind: 'id', id };
  if (url !== undefined) return { kind: 'url', url };
  return fileData(part.required('file_data', data));
}

/** `encrypted_content` is that of OpenAI, or what another provider wants back. */
function readReasoning(item: MemberReader): ReasoningPart {
  const summary = item.objects('summary', readReasoningText);
  const content = item.objects('content', readReasoningText);
  const text = (content.length === 0 ? summary : content).join('\n\n');
  const encrypted = item.text('encrypted_content');
  const id = item.text('id');
  const foreign = encrypted === undefined ? undefined : unpackReasoning(encrypted);
  if (foreign !== undefined) return { type: 'reasoning', text, ...foreign };
  // Open models return their reasoning as it is.
  if (encrypted === undefined && content.length > 0)
    return { type: 'reasoning', text, origin: 'completions' };
  return defined({
    type: 'reasoning' as const,
    text,
    isSummary: content.length === 0 ? true : undefined,
    encrypted,
    id,
    origin: 'responses' as const,
  });
}

function readReasoningText(part: MemberReader): string {
  part.only('type', 'summary_text', 'reasoning_text');
  return part.requiredText('text');
}

function readCall(item: MemberReader, isCustom: boolean): ToolCallPart {
  item.object('caller', (caller) => caller.only('type', 'direct'));
  const [name, namespace] = [item.requiredText('name'), item.text('namespace')];
  return {
    type: 'toolCall',
    id: item.requiredText('call_id'),
    name: namespace === undefined ? name : nameInNamespace(namespace, name),
    arguments: item.requiredText(isCustom ? 'input' : 'arguments'),
    ...(isCustom ? { isCustom } : {}),
  };
}

function readResult(item: MemberReader, isCustom: boolean): ToolResultPart {
  item.object('caller', (caller) => caller.only('type', 'direct'));
  return {
    type: 'toolResult',
    callId: item.requiredText('call_id'),
    parts: item.textOrObjects<ToolResultPart['parts'][number]>('output', plainText, readOutputPart) ?? [],
    ...(isCustom ? { isCustom } : {}),
  };
}

/** A search for tools that the client makes. */
function readSearchCall(item: MemberReader): ToolCallPart {
  if (item.text('execution') !== 'client') item.refuse('type');
  const args = item.json('arguments') ?? {};
  return {
    type: 'toolCall',
    id: item.requiredText('call_id'),
    name: SEARCH,
    arguments: JSON.stringify(args),
  };
}

/** The tools that it found. The model reads their names. */
function readSearchResult(item: MemberReader, tools: Tool[]): ToolResultPart {
  if (item.text('execution') !== 'client') item.refuse('type');
  const found = item.objects('tools', readFoundTool).flat();
  tools.push(...found);
  const text =
    found.length === 0 ? 'No tools found.' : `Found tools: ${found.map(({ name }) => name).join(', ')}`;
  return { type: 'toolResult', callId: item.requiredText('call_id'), parts: [plainText(text)] };
}

function readOutputPart(part: MemberReader): ToolResultPart['parts'][number] {
  const type = part.requiredChoice('type', ['input_text', 'output_text', 'input_image', 'input_file']);
  if (type === 'input_image' || type === 'input_file') return readAttachment(part, type);
  part.skip(TEXT_HINTS);
  return defined({ ...plainText(part.requiredText('text')), cache: readCacheMark(part) });
}
