import type { ChatEvent, ChatUsage, StartedPart } from '../../chat/chat.ts';
import { type EventReader, type Json, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import {
  countOf,
  isBlank,
  isEmpty,
  objectOf,
  parseEvent,
  requiredName,
  shown,
  textOf,
} from '../../chat/event-data.ts';
import { readEventError } from '../../chat/provider-error.ts';
import { stopReason } from './read-response.ts';
import { addReport, readUsage, withoutPlaceholder } from './usage.ts';

/** Reads a stream of the Messages API (API reference, "Streaming Messages"). */
export function eventReader(): EventReader {
  return new MessagesReader();
}

interface Block {
  readonly part: number;
  readonly type: StartedPart['type'];
  /** Input of a tool in the start of its block, as some compatible servers send it. */
  readonly input: Json | undefined;
  hasText: boolean;
}

class MessagesReader implements EventReader {
  readonly #blocks = new Map<number, Block>();
  #id = '';
  #parts = 0;
  /** Counts of all events. Those of a later one replace those of earlier ones; members that it lacks stay. */
  #reported: Json | undefined;
  /** The counts, which never fall: some servers repeat a report with zeros. */
  usage: ChatUsage | undefined;
  #hasStopped = false;

  read(data: string, type?: string): readonly ChatEvent[] {
    const event = parseEvent(data);
    switch (textOf(event['type']) ?? type) {
      case 'message_start':
        return this.#start(objectOf(event['message']) ?? {});
      case 'content_block_start':
        return this.#blockStart(countOf(event['index']) ?? 0, objectOf(event['content_block']) ?? {});
      case 'content_block_delta':
        return this.#delta(event, objectOf(event['delta']) ?? {});
      case 'content_block_stop':
        return this.#blockStop(event);
      case 'message_delta':
        return this.#messageDelta(objectOf(event['delta']) ?? {}, event['usage']);
      case 'message_stop':
        return [defined({ type: 'end' as const, usage: this.usage })];
      case 'error':
        return [{ type: 'error', error: readEventError(event) }];
      case 'ping':
        return [{ type: 'ping' }];
      default:
        // The API reference asks clients to ignore events of types that they do not know.
        return [];
    }
  }

  /** A few servers send no `message_stop`: the answer is complete if its reason to stop is known. */
  end(): readonly ChatEvent[] {
    return this.#hasStopped ? [defined({ type: 'end' as const, usage: this.usage })] : [];
  }

  #start(message: Json): ChatEvent[] {
    this.#addUsage(message['usage']);
    this.#id = textOf(message['id']) ?? '';
    const model = textOf(message['model']) ?? '';
    const usage = this.usage;
    if (this.#reported !== undefined) this.#reported = withoutPlaceholder(this.#reported);
    return [defined({ type: 'start' as const, id: this.#id, model, usage })];
  }

  #blockStart(index: number, content: Json): ChatEvent[] {
    if (isEmpty(content)) return [];
    const started = startOf(content, `call_${this.#id}_${this.#parts}`);
    const part = this.#parts;
    this.#parts += 1;
    const block: Block = {
      part,
      type: started.type,
      input: inputOf(content['input']),
      hasText: false,
    };
    this.#blocks.set(index, block);
    const first = textOf(content['text']) ?? textOf(content['thinking']);
    return [
      { type: 'partStart', part, answer: 0, content: started },
      ...(first === undefined ? [] : [{ type: 'delta' as const, part, text: first }]),
      ...signatureEvents(part, content),
    ];
  }

  #delta(event: Json, delta: Json): ChatEvent[] {
    const block = this.#block(event);
    if (block === undefined) return this.#unstarted(event, delta);
    const { part } = block;
    switch (delta['type']) {
      case 'text_delta':
        return textEvents(part, delta['text']);
      case 'thinking_delta':
        return textEvents(part, delta['thinking']);
      case 'input_json_delta': {
        const events = textEvents(part, delta['partial_json']);
        if (events.length > 0) block.hasText = true;
        return events;
      }
      case 'signature_delta':
        return signatureEvents(part, delta);
      default:
        // `citations_delta` needs a request with citations, which no translation writes.
        return [];
    }
  }

  /** Some servers send texts of blocks that they have not started. Throws `Untranslatable` for another content. */
  #unstarted(event: Json, delta: Json): ChatEvent[] {
    const type = BLOCKS.get(delta['type']);
    if (type !== undefined) {
      const started = this.#blockStart(countOf(event['index']) ?? 0, { type });
      return [...started, ...this.#delta(event, delta)];
    }
    if (textOf(delta['partial_json']) === undefined) return [];
    throw new Untranslatable('content_block_delta.delta.partial_json', 'its block has not started');
  }

  #blockStop(event: Json): ChatEvent[] {
    const block = this.#block(event);
    if (block === undefined) return [];
    this.#blocks.delete(countOf(event['index']) ?? 0);
    const { part, hasText, input } = block;
    const isWhole = input !== undefined && !hasText;
    return [
      ...(isWhole ? [{ type: 'delta' as const, part, text: JSON.stringify(input) }] : []),
      { type: 'partEnd', part },
    ];
  }

  #messageDelta(delta: Json, usage: unknown): ChatEvent[] {
    this.#addUsage(usage);
    const reason = textOf(delta['stop_reason']);
    if (reason === undefined) return [];
    this.#hasStopped = true;
    const stopSequence = textOf(delta['stop_sequence']);
    const explanation = textOf(objectOf(delta['stop_details'])?.['explanation']);
    return [
      ...(reason === 'refusal' && explanation !== undefined ? this.#refusal(explanation) : []),
      defined({ type: 'answerEnd' as const, answer: 0, stop: stopReason(reason), stopSequence }),
    ];
  }

  #refusal(text: string): ChatEvent[] {
    const part = this.#parts;
    this.#parts += 1;
    return [
      { type: 'partStart', part, answer: 0, content: { type: 'refusal' } },
      { type: 'delta', part, text },
      { type: 'partEnd', part },
    ];
  }

  #addUsage(usage: unknown): void {
    const report = objectOf(usage);
    if (report === undefined) return;
    this.#reported = addReport(this.#reported ?? {}, report);
    this.usage = readUsage(this.#reported);
  }

  #block(event: Json): Block | undefined {
    return this.#blocks.get(countOf(event['index']) ?? 0);
  }
}

/** Blocks by the deltas that only they have. */
const BLOCKS: ReadonlyMap<unknown, string> = new Map([
  ['text_delta', 'text'],
  ['thinking_delta', 'thinking'],
]);

function startOf(block: Json, missingId: string): StartedPart {
  switch (block['type']) {
    case 'text':
      return { type: 'text' };
    case 'thinking':
      return { type: 'reasoning', origin: 'messages' };
    case 'redacted_thinking':
      return defined({
        type: 'reasoning' as const,
        encrypted: textOf(block['data']),
        origin: 'messages' as const,
      });
    case 'tool_use':
      return {
        type: 'toolCall',
        id: textOf(block['id']) ?? missingId,
        name: requiredName(block['name'], 'content_block.name'),
      };
    default:
      throw new Untranslatable(`content_block.type: ${shown(block['type'])}`);
  }
}

/** Throws `Untranslatable` for another value than an object. */
function inputOf(value: unknown): Json | undefined {
  if (isBlank(value)) return undefined;
  const input = objectOf(value);
  if (input === undefined) throw new Untranslatable('content_block.input', 'expected an object');
  return input;
}

function textEvents(part: number, value: unknown): ChatEvent[] {
  const text = textOf(value);
  return text === undefined ? [] : [{ type: 'delta', part, text }];
}

function signatureEvents(part: number, value: Json): ChatEvent[] {
  const signature = textOf(value['signature']);
  return signature === undefined ? [] : [{ type: 'signature', part, signature }];
}
