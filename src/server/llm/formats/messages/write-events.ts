import type { ChatEvent, ChatRequest, ChatUsage, StartedPart } from '../../chat/chat.ts';
import { type EventWriter, type Json, Untranslatable } from '../../chat/chat-format.ts';
import { serverEvent } from '../../chat/event-data.ts';
import { reasoningOf, type StartedReasoning } from '../../chat/event-response.ts';
import { HeldText } from '../../chat/held-text.ts';
import { packReasoning } from '../../chat/reasoning-state.ts';
import { callArguments } from '../../chat/tool-arguments.ts';
import { writeError } from './error.ts';
import { stopDetails, writeStopReason, writeUsage } from './write-response.ts';

/** Writes a stream of the Messages API (API reference, "Streaming Messages"). */
export function eventWriter(_request: ChatRequest): EventWriter {
  return new MessagesWriter();
}

/** A part that has started. Only the first one is written; the others wait for its end. */
interface Block {
  readonly part: number;
  readonly start: StartedPart;
  /** Text that has not been written. */
  text: string;
  signature?: string;
  encrypted?: string;
  /** Whether the arguments of a tool call begin like an object; undefined while there are none. */
  isObject: boolean | undefined;
  /** Arguments that are not an object: what they become is known at their end. */
  other: string;
  hasEnded: boolean;
}

/**
 * Content blocks of a message follow each other, but parallel tool calls of other formats may be interleaved: what
 * belongs to a later block is held until the earlier ones have ended.
 */
class MessagesWriter implements EventWriter {
  readonly #blocks: Block[] = [];
  readonly #held = new HeldText();
  /** Index of the first of `#blocks`. */
  #index = 0;
  #refusal = '';
  #stop: Extract<ChatEvent, { type: 'answerEnd' }> | undefined;

  write(event: ChatEvent): string {
    switch (event.type) {
      case 'start':
        return start(event);
      case 'partStart':
        return this.#partStart(event);
      case 'delta':
        return this.#delta(this.#block(event.part), event.text);
      case 'signature':
        this.#block(event.part).signature = this.#held.add(event.signature);
        return '';
      case 'encrypted':
        this.#block(event.part).encrypted = this.#held.add(event.encrypted);
        return '';
      case 'partEnd':
        this.#block(event.part).hasEnded = true;
        return this.#advance();
      case 'answerEnd':
        this.#stop = event;
        return '';
      case 'end':
        return this.#end(event.usage);
      case 'error':
        return serverEvent(writeError(event.error), 'error');
      case 'ping':
        return serverEvent({ type: 'ping' }, 'ping');
    }
  }

  #partStart({ part, answer, content }: Extract<ChatEvent, { type: 'partStart' }>): string {
    if (answer > 0) throw new Untranslatable('the second answer of the response');
    // The input of a custom tool is any text.
    const isObject = content.type === 'toolCall' && content.isCustom === true ? false : undefined;
    const block = { part, start: content, text: '', isObject, other: '', hasEnded: false };
    this.#blocks.push(block);
    return this.#blocks.length === 1 ? this.#open(block) : '';
  }

  #block(part: number): Block {
    const block = this.#blocks.find((each) => each.part === part);
    if (block === undefined) throw new Error(`part ${part} is not open`);
    return block;
  }

  #delta(block: Block, text: string): string {
    if (block.start.type === 'toolCall' && !beginsObject(block, text)) {
      if (block.isObject === false) block.other += this.#held.add(text);
      return '';
    }
    if (block.start.type === 'refusal') this.#refusal += this.#held.add(text);
    if (block === this.#blocks[0]) return this.#event(deltaOf(block.start, text));
    block.text += this.#held.add(text);
    return '';
  }

  /** Ends the blocks that may end, and writes what was held of the next. */
  #advance(): string {
    let written = '';
    for (let first = this.#blocks[0]; first?.hasEnded === true; first = this.#blocks[0]) {
      written += this.#close(first);
      this.#blocks.shift();
      this.#index += 1;
      const next = this.#blocks[0];
      if (next !== undefined) written += this.#open(next);
    }
    return written;
  }

  #open(block: Block): string {
    const { start, text } = block;
    this.#held.remove(text);
    block.text = '';
    const event: Json = { type: 'content_block_start', index: this.#index, content_block: blockOf(start) };
    return serverEvent(event, 'content_block_start') + (text === '' ? '' : this.#event(deltaOf(start, text)));
  }

  #close(block: Block): string {
    const signature = signatureOf(block);
    const { start, other } = block;
    this.#held.remove(other);
    return (
      (start.type === 'toolCall' && other !== ''
        ? this.#event(deltaOf(start, JSON.stringify(callArguments({ ...start, arguments: other }))))
        : '') +
      (signature === undefined ? '' : this.#event({ type: 'signature_delta', signature })) +
      serverEvent({ type: 'content_block_stop', index: this.#index }, 'content_block_stop')
    );
  }

  #event(delta: Json): string {
    return serverEvent({ type: 'content_block_delta', index: this.#index, delta }, 'content_block_delta');
  }

  #end(usage: Extract<ChatEvent, { type: 'end' }>['usage']): string {
    const { stop = 'stop', stopSequence = null } = this.#stop ?? {};
    const delta = {
      stop_reason: writeStopReason(stop),
      stop_sequence: stopSequence,
      ...stopDetails({ stop, parts: this.#refusal === '' ? [] : [{ type: 'refusal', text: this.#refusal }] }),
    };
    return (
      serverEvent({ type: 'message_delta', delta, usage: writeUsage(usage ?? NO_USAGE) }, 'message_delta') +
      serverEvent({ type: 'message_stop' }, 'message_stop')
    );
  }
}

/** Clients parse the input of a tool as soon as its block ends, and take it for an object. */
function beginsObject(block: Block, text: string): boolean {
  if (block.isObject === undefined && text.trim() !== '') block.isObject = text.trimStart().startsWith('{');
  return block.isObject === true;
}

/** The API has no way to leave counts out. */
const NO_USAGE: ChatUsage = { input: 0, output: 0 };

function start({ id, model, usage }: Extract<ChatEvent, { type: 'start' }>): string {
  const message = {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: writeUsage(usage ?? NO_USAGE),
  };
  return serverEvent({ type: 'message_start', message }, 'message_start');
}

function blockOf(start: StartedPart): Json {
  switch (start.type) {
    // A refusal is text that `stop_reason` says more of.
    case 'text':
    case 'refusal':
      return { type: 'text', text: '' };
    case 'toolCall':
      return { type: 'tool_use', id: start.id, name: start.name, input: {} };
    case 'reasoning':
      return isRedacted(start)
        ? { type: 'redacted_thinking', data: start.encrypted }
        : { type: 'thinking', thinking: '', signature: '' };
  }
}

const isRedacted = (start: StartedPart): start is StartedReasoning & { encrypted: string } =>
  start.type === 'reasoning' && start.origin === 'messages' && start.encrypted !== undefined;

function deltaOf(start: StartedPart, text: string): Json {
  if (start.type === 'toolCall') return { type: 'input_json_delta', partial_json: text };
  if (start.type === 'reasoning') return { type: 'thinking_delta', thinking: text };
  return { type: 'text_delta', text };
}

/** What the client sends back with the reasoning. */
function signatureOf({ start, signature, encrypted }: Block): string | undefined {
  if (start.type !== 'reasoning' || isRedacted(start)) return undefined;
  if (start.origin === 'messages') return signature;
  return packReasoning(reasoningOf({ start, signature, encrypted }));
}
