import type { ChatEvent, ChatUsage, StartedPart } from '../../chat/chat.ts';
import { type EventReader, type Json, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import {
  countOf,
  isEmpty,
  objectOf,
  objectsOf,
  parseEvent,
  requiredName,
  shown,
  textOf,
} from '../../chat/event-data.ts';
import { HeldText } from '../../chat/held-text.ts';
import { readEventError } from '../../chat/provider-error.ts';
import { argumentsText, isPlaceholder } from '../../chat/tool-arguments.ts';
import { SEPARATOR } from '../../chat/turns.ts';
import { largerUsage, parseUsage } from '../../usage.ts';
import { stopReason } from './read-response.ts';

/** Reads a stream of the Responses API (API reference, "Streaming events"). */
export function eventReader(): EventReader {
  return new ResponsesReader();
}

/** A part of an output item. */
interface OpenPart {
  readonly part: number;
  readonly type: StartedPart['type'];
  hasText: boolean;
}

/** An output item by its parts: `content_index` of a message, 0 of other items. */
type Item = Map<number, OpenPart>;

/** The call that an item is; undefined for another item. */
function callOf(value: Json): { readonly isCustom?: true } | undefined {
  if (value['type'] === 'function_call') return {};
  return value['type'] === 'custom_tool_call' ? { isCustom: true } : undefined;
}

class ResponsesReader implements EventReader {
  readonly #items = new Map<number, Item>();
  readonly #kinds: { readonly type: StartedPart['type'] }[] = [];
  /** Arguments of items whose name is not known. */
  readonly #early = new WeakMap<Item, string>();
  readonly #held = new HeldText();
  #id = '';
  usage: ChatUsage | undefined;
  #events: ChatEvent[] = [];

  read(data: string, type?: string): readonly ChatEvent[] {
    const event = parseEvent(data);
    this.#events = [];
    this.#read(textOf(event['type']) ?? type ?? '', event);
    return this.#events;
  }

  end(): readonly ChatEvent[] {
    return [];
  }

  #read(type: string, event: Json): void {
    const response = objectOf(event['response']) ?? {};
    this.usage = largerUsage(this.usage, parseUsage(response['usage']));
    switch (type) {
      case 'response.created':
        this.#id = textOf(response['id']) ?? '';
        this.#events.push(startOf(response));
        return;
      case 'response.output_item.added':
        this.#itemAdded(this.#item(event), objectOf(event['item']) ?? {});
        return;
      case 'response.output_text.delta':
        this.#text(this.#part(event, { type: 'text' }), event['delta']);
        return;
      case 'response.output_text.done':
        this.#wholeText(this.#part(event, { type: 'text' }), event['text']);
        return;
      case 'response.refusal.delta':
        this.#text(this.#part(event, { type: 'refusal' }), event['delta']);
        return;
      case 'response.reasoning_text.delta':
        this.#text(this.#reasoning(event, {}), event['delta']);
        return;
      case 'response.reasoning_summary_part.added':
        this.#separate(this.#reasoning(event, { isSummary: true }));
        return;
      case 'response.reasoning_summary_text.delta':
        this.#text(this.#reasoning(event, { isSummary: true }), event['delta']);
        return;
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.#arguments(this.#item(event), argumentsText(event['delta']));
        return;
      case 'response.output_item.done':
        this.#itemDone(event, objectOf(event['item']) ?? {});
        return;
      case 'response.completed':
      case 'response.incomplete':
        this.#end(response);
        return;
      case 'response.failed':
        this.#events.push({
          type: 'error',
          error: readEventError(isEmpty(response['error']) ? event : response),
        });
        return;
      case 'error':
        this.#events.push({ type: 'error', error: readEventError({ error: event }) });
        return;
      case 'keepalive':
        this.#events.push({ type: 'ping' });
        return;
      default:
      // Progress of items, and texts that deltas have contained.
    }
  }

  #item(event: Json): Item {
    const index = countOf(event['output_index']) ?? 0;
    let item = this.#items.get(index);
    if (item === undefined) {
      item = new Map();
      this.#items.set(index, item);
    }
    return item;
  }

  #itemAdded(item: Item, value: Json): void {
    const call = callOf(value);
    if (call !== undefined) {
      // Some servers tell the name at the end of the item.
      if (textOf(value['name']) !== undefined) this.#startCall(item, value, call);
      return;
    }
    const isKnown = value['type'] === 'message' || value['type'] === 'reasoning';
    if (!isKnown && !isEmpty(value)) throw new Untranslatable(`output.type: ${shown(value['type'])}`);
  }

  #startCall(item: Item, value: Json, call: { readonly isCustom?: true }): OpenPart {
    const id = textOf(value['call_id']) ?? textOf(value['id']) ?? `call_${this.#id}_${this.#kinds.length}`;
    const name = requiredName(value['name'], 'output.name');
    const open = this.#start(item, 0, { type: 'toolCall', id, name, ...call });
    this.#text(open, this.#early.get(item));
    return open;
  }

  /** Arguments, which are held until the call has a name. */
  #arguments(item: Item, text: string): void {
    const open = item.get(0);
    if (open === undefined) this.#early.set(item, (this.#early.get(item) ?? '') + this.#held.add(text));
    // The item has them at its end.
    else if (open.hasText || !isPlaceholder(text)) this.#text(open, text);
  }

  #start(item: Item, index: number, content: StartedPart): OpenPart {
    const open = { part: this.#kinds.length, type: content.type, hasText: false };
    this.#kinds.push(content);
    item.set(index, open);
    this.#events.push({ type: 'partStart', part: open.part, answer: 0, content });
    return open;
  }

  #part(event: Json, content: StartedPart): OpenPart {
    const index = countOf(event['content_index']) ?? 0;
    const item = this.#item(event);
    return item.get(index) ?? this.#start(item, index, content);
  }

  /** The reasoning of an item is one part: its summary or, from servers that disclose it, its text. */
  #reasoning(event: Json, kind: { readonly isSummary?: true }): OpenPart {
    const item = this.#item(event);
    const id = textOf(event['item_id']) ?? textOf(objectOf(event['item'])?.['id']);
    const start = defined({ type: 'reasoning' as const, ...kind, id, origin: 'responses' as const });
    return item.get(0) ?? this.#start(item, 0, start);
  }

  #separate(open: OpenPart): void {
    if (open.hasText) this.#text(open, SEPARATOR);
  }

  #text(open: OpenPart | undefined, value: unknown): void {
    const text = textOf(value);
    if (open === undefined || text === undefined) return;
    open.hasText = true;
    this.#events.push({ type: 'delta', part: open.part, text });
  }

  /** A text that some servers have not streamed before (Sophomoresty/gemini-web2api#57). */
  #wholeText(open: OpenPart, value: unknown): void {
    if (!open.hasText) this.#text(open, value);
  }

  /** Ends the parts of an item, and adds what a server did not stream of it. */
  #itemDone(event: Json, value: Json): void {
    const item = this.#item(event);
    switch (value['type']) {
      case 'message':
        for (const [index, content] of objectsOf(value['content']).entries()) {
          const isRefusal = content['type'] === 'refusal';
          const open = item.get(index) ?? this.#start(item, index, { type: isRefusal ? 'refusal' : 'text' });
          this.#wholeText(open, content[isRefusal ? 'refusal' : 'text']);
        }
        break;
      case 'reasoning':
        this.#reasoningDone(event, value);
        break;
      default: {
        const call = callOf(value);
        const open = item.get(0) ?? (call === undefined ? undefined : this.#startCall(item, value, call));
        if (open?.hasText === false) this.#text(open, argumentsText(value['arguments'] ?? value['input']));
      }
    }
    for (const { part } of item.values()) this.#events.push({ type: 'partEnd', part });
    this.#items.delete(countOf(event['output_index']) ?? 0);
  }

  #reasoningDone(event: Json, value: Json): void {
    const summary = objectsOf(value['summary']).flatMap((part) => textOf(part['text']) ?? []);
    const content = objectsOf(value['content']).flatMap((part) => textOf(part['text']) ?? []);
    const isSummary = content.length === 0;
    const open = this.#reasoning(event, isSummary ? { isSummary } : {});
    if (!open.hasText) this.#text(open, (isSummary ? summary : content).join(SEPARATOR));
    const encrypted = textOf(value['encrypted_content']);
    if (encrypted !== undefined) this.#events.push({ type: 'encrypted', part: open.part, encrypted });
  }

  #end(response: Json): void {
    // What the end says of items that had no event of their own.
    const output = this.#kinds.length === 0 ? objectsOf(response['output']) : [];
    for (const [index, item] of output.entries()) {
      const event = { output_index: index };
      this.#itemAdded(this.#item(event), item);
      this.#itemDone(event, item);
    }
    const reason = textOf(objectOf(response['incomplete_details'])?.['reason']);
    const stop = stopReason(textOf(response['status']), reason, this.#kinds);
    this.#events.push({ type: 'answerEnd', answer: 0, stop });
    this.#events.push(defined({ type: 'end' as const, usage: this.usage }));
  }
}

function startOf(response: Json): ChatEvent {
  return defined({
    type: 'start' as const,
    id: textOf(response['id']) ?? '',
    model: textOf(response['model']) ?? '',
    created: countOf(response['created_at']),
  });
}
