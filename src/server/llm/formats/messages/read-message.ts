import { readCacheMark } from '../../chat/cache-mark.ts';
import type {
  FilePart,
  ImagePart,
  Part,
  ReasoningPart,
  Source,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../chat/chat.ts';
import { registeredType } from '../../chat/data-url.ts';
import { defined } from '../../chat/defined.ts';
import type { MemberReader } from '../../chat/member-reader.ts';
import { unpackReasoning } from '../../chat/reasoning-state.ts';
import { BLOCK_HINTS } from './hints.ts';

/** Reads an element of `messages`. */
export function readMessage(message: MemberReader): Turn {
  const role = message.requiredChoice('role', ['user', 'assistant', 'system']);
  message.only('clear_at', 'never');
  return { role, parts: message.textOrObjects<Part>('content', plainText, readBlock) ?? [] };
}

function plainText(text: string): TextPart {
  return { type: 'text', text };
}

const BLOCKS = [
  'text',
  'image',
  'document',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'tool_result',
] as const;

function readBlock(block: MemberReader): Part {
  switch (block.requiredChoice('type', BLOCKS)) {
    case 'text':
      return readText(block);
    case 'image':
      return readImage(block);
    case 'document':
      return readDocument(block);
    case 'thinking':
      return readThinking(block);
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', ...readState(block.requiredText('data'), 'encrypted') };
    case 'tool_use':
      return readToolUse(block);
    case 'tool_result':
      return readToolResult(block);
  }
}

/** A text block, also of `system`. */
export function readText(block: MemberReader): TextPart {
  block.only('type', 'text');
  block.skip(BLOCK_HINTS);
  return defined({ type: 'text' as const, text: block.requiredText('text'), cache: readCacheMark(block) });
}

function readImage(block: MemberReader): ImagePart {
  const source = block.requiredObject('source', (members): Source => {
    const type = members.requiredChoice('type', ['base64', 'url', 'file']);
    return type === 'base64' ? readBase64(members) : readReference(members, type);
  });
  return defined({ type: 'image' as const, source, cache: readCacheMark(block) });
}

function readBase64(members: MemberReader): Source {
  return {
    kind: 'data',
    mediaType: registeredType(members.requiredText('media_type')),
    data: members.requiredText('data'),
  };
}

function readReference(members: MemberReader, type: 'url' | 'file'): Source {
  return type === 'url'
    ? { kind: 'url', url: members.requiredText('url') }
    : { kind: 'id', id: members.requiredText('file_id') };
}

function readDocument(block: MemberReader): FilePart {
  const source = block.requiredObject('source', (members): FilePart['source'] => {
    const type = members.requiredChoice('type', ['base64', 'text', 'url', 'file']);
    if (type === 'base64') return readBase64(members);
    if (type !== 'text') return readReference(members, type);
    members.only('media_type', 'text/plain');
    return { kind: 'text', text: members.requiredText('data') };
  });
  block.object('citations', (citations) => citations.only('enabled', false));
  return defined({
    type: 'file' as const,
    source,
    name: block.text('title'),
    cache: readCacheMark(block),
  });
}

function readThinking(block: MemberReader): ReasoningPart {
  const text = block.requiredText('thinking');
  // The API refuses the mark here, but clients set it on whatever is last (router-for-me/CLIProxyAPI#512).
  readCacheMark(block);
  return { type: 'reasoning', text, ...readState(block.text('signature') ?? '', 'signature') };
}

/** The state of this format's own providers, or what another provider wants back. */
function readState(state: string, kind: 'signature' | 'encrypted'): Partial<ReasoningPart> {
  return unpackReasoning(state) ?? (state === '' ? {} : { origin: 'messages', [kind]: state });
}

function readToolUse(block: MemberReader): ToolCallPart {
  readCaller(block);
  const input = block.json('input') ?? {};
  return defined({
    type: 'toolCall' as const,
    id: block.requiredText('id'),
    name: block.requiredText('name'),
    arguments: JSON.stringify(input),
    cache: readCacheMark(block),
  });
}

/** Calls by code that runs at the provider cannot be translated. */
function readCaller(block: MemberReader): void {
  block.object('caller', (caller) => caller.only('type', 'direct'));
}

function readToolResult(block: MemberReader): ToolResultPart {
  return defined({
    type: 'toolResult' as const,
    callId: block.requiredText('tool_use_id'),
    parts: block.textOrObjects<ToolResultPart['parts'][number]>('content', plainText, readResultBlock) ?? [],
    isError: block.flag('is_error') === true ? true : undefined,
    cache: readCacheMark(block),
  });
}

function readResultBlock(block: MemberReader): ToolResultPart['parts'][number] {
  switch (block.requiredChoice('type', ['text', 'image', 'document', 'tool_reference'])) {
    case 'text':
      return readText(block);
    case 'image':
      return readImage(block);
    case 'document':
      return readDocument(block);
    case 'tool_reference':
      return defined({
        type: 'text' as const,
        text: `The tool ${block.requiredText('tool_name')} is available now.`,
        cache: readCacheMark(block),
      });
  }
}
