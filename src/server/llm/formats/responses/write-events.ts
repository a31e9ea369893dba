import { elementsOf } from '../../../../core/foreign.ts';
import type { AnswerPart, ChatError, ChatEvent, ChatRequest, StopReason } from '../../chat/chat.ts';
import type { EventWriter, Json } from '../../chat/chat-format.ts';
import { PING, serverEvent } from '../../chat/event-data.ts';
import { ResponseCollector } from '../../chat/event-response.ts';
import { openAiCode } from '../openai-error.ts';
import { isReasoningContent, itemId, responseObject, writeOutput, writeResponse } from './write-response.ts';

/** Writes a stream of the Responses API (API reference, "Streaming events"). */
export function eventWriter(request: ChatRequest): EventWriter {
  return new ResponsesWriter(request);
}

/** An output item: texts and refusals that follow each other are one message, other parts have an item each. */
interface Item {
  readonly id: string;
  readonly index: number;
  /** Numbers of its parts. The place in the list is the `content_index`. */
  readonly parts: number[];
  open: number;
  /** A message that gets no more parts. */
  isClosed: boolean;
}

class ResponsesWriter implements EventWriter {
  readonly #request: ChatRequest;
  /** The last event of a stream repeats everything. */
  readonly #collector = new ResponseCollector();
  /** Open items by the numbers of their parts. */
  readonly #items = new Map<number, Item>();
  /** The message that following texts belong to. */
  #message: Item | undefined;
  /** Reasoning that has text. */
  readonly #begun = new Set<number>();
  #itemCount = 0;
  #sequence = 0;
  #hasStarted = false;

  constructor(request: ChatRequest) {
    this.#request = request;
  }

  write(event: ChatEvent): string {
    this.#collector.add(event);
    switch (event.type) {
      case 'start': {
        this.#hasStarted = true;
        const response = responseObject(event, this.#request);
        return (
          this.#event('response.created', { response }) + this.#event('response.in_progress', { response })
        );
      }
      case 'partStart':
        return this.#partStart(event.part);
      case 'delta':
        return this.#delta(event.part, event.text);
      case 'partEnd':
        return this.#partEnd(event.part);
      case 'answerEnd':
        return this.#closeMessage(event.stop);
      case 'end': {
        const response = writeResponse(this.#collector.response(), this.#request);
        return this.#event(`response.${String(response['status'])}`, { response });
      }
      case 'error':
        return this.#error(event.error);
      case 'ping':
        return PING;
      default:
        return '';
    }
  }

  #event(type: string, members: Json): string {
    const event = { type, sequence_number: this.#sequence, ...members };
    this.#sequence += 1;
    return serverEvent(event, type);
  }

  #partStart(number: number): string {
    const part = this.#collector.partOf(number);
    if (part.type !== 'text' && part.type !== 'refusal')
      return this.#closeMessage('stop') + this.#added(this.#newItem(number, part.type), startOf(part));
    let written = '';
    if (this.#message === undefined) {
      this.#message = this.#newItem(number, 'message');
      written = this.#added(this.#message, { type: 'message', role: 'assistant', content: [] });
    } else {
      this.#message.parts.push(number);
      this.#message.open += 1;
      this.#items.set(number, this.#message);
    }
    return written + this.#content(number, 'added');
  }

  #newItem(number: number, type: 'message' | AnswerPart['type']): Item {
    const index = this.#itemCount;
    this.#itemCount += 1;
    const id = itemId(type, this.#collector.response().id, index);
    const item = { id, index, parts: [number], open: 1, isClosed: type !== 'message' };
    this.#items.set(number, item);
    return item;
  }

  #added({ id, index }: Item, value: Json): string {
    return this.#event('response.output_item.added', {
      output_index: index,
      item: {
        id,
        ...value,
        ...('status' in value || value['type'] === 'message' ? { status: 'in_progress' } : {}),
      },
    });
  }

  /** Start or end of a content of a message. */
  #content(number: number, change: 'added' | 'done'): string {
    const [message] = writeOutput([this.#collector.partOf(number)], 'stop', '');
    const [part] = elementsOf(message?.['content']);
    return this.#event(`response.content_part.${change}`, { ...this.#place(number), part });
  }

  #place(number: number): Json {
    const { id, index, parts } = this.#item(number);
    return { item_id: id, output_index: index, content_index: parts.indexOf(number) };
  }

  #item(number: number): Item {
    const item = this.#items.get(number);
    if (item === undefined) throw new Error(`part ${number} is not open`);
    return item;
  }

  #delta(number: number, delta: string): string {
    const part = this.#collector.partOf(number);
    let written = '';
    if (part.type === 'reasoning' && !this.#begun.has(number)) {
      this.#begun.add(number);
      written = this.#reasoningPart(number, { ...part, text: '' }, 'added');
    }
    return written + this.#text(number, part, 'delta', { delta });
  }

  #partEnd(number: number): string {
    const part = this.#collector.partOf(number);
    const item = this.#item(number);
    const written = this.#partDone(number, part);
    item.open -= 1;
    return written + (item.isClosed ? this.#itemDone(item, 'stop') : '');
  }

  #partDone(number: number, part: AnswerPart): string {
    switch (part.type) {
      case 'text':
        return this.#text(number, part, 'done', { text: part.text }) + this.#content(number, 'done');
      case 'refusal':
        return this.#text(number, part, 'done', { refusal: part.text }) + this.#content(number, 'done');
      case 'reasoning':
        if (!this.#begun.has(number)) return '';
        return (
          this.#text(number, part, 'done', { text: part.text }) + this.#reasoningPart(number, part, 'done')
        );
      case 'toolCall': {
        const { name, arguments: text, isCustom, client } = part;
        return this.#text(
          number,
          part,
          'done',
          isCustom === true ? { input: text } : { name: client?.name ?? name, arguments: text },
        );
      }
    }
  }

  /** More of the text of a part, or all of it at its end. */
  #text(number: number, part: AnswerPart, change: 'delta' | 'done', members: Json): string {
    const { content_index, ...item } = this.#place(number);
    switch (part.type) {
      case 'text':
        return this.#event(`response.output_text.${change}`, {
          ...item,
          content_index,
          ...members,
          logprobs: [],
        });
      case 'refusal':
        return this.#event(`response.refusal.${change}`, { ...item, content_index, ...members });
      case 'reasoning':
        return isReasoningContent(part)
          ? this.#event(`response.reasoning_text.${change}`, { ...item, content_index, ...members })
          : this.#event(`response.reasoning_summary_text.${change}`, {
              ...item,
              summary_index: 0,
              ...members,
            });
      case 'toolCall': {
        // A search is only in the item.
        if (part.client?.isSearch === true) return '';
        const kind = part.isCustom === true ? 'custom_tool_call_input' : 'function_call_arguments';
        return this.#event(`response.${kind}.${change}`, { ...item, ...members });
      }
    }
  }

  /** Start or end of the only text of a reasoning item. */
  #reasoningPart(
    number: number,
    part: Extract<AnswerPart, { type: 'reasoning' }>,
    change: 'added' | 'done',
  ): string {
    const { content_index, ...item } = this.#place(number);
    const { text } = part;
    return isReasoningContent(part)
      ? this.#event(`response.content_part.${change}`, {
          ...item,
          content_index,
          part: { type: 'reasoning_text', text },
        })
      : this.#event(`response.reasoning_summary_part.${change}`, {
          ...item,
          summary_index: 0,
          part: { type: 'summary_text', text },
        });
  }

  /** Ends the message, or leaves that to the end of its last part. */
  #closeMessage(stop: StopReason): string {
    const message = this.#message;
    this.#message = undefined;
    if (message === undefined) return '';
    message.isClosed = true;
    return this.#itemDone(message, stop);
  }

  #itemDone({ id, index, parts, open }: Item, stop: StopReason): string {
    if (open > 0) return '';
    const [item] = writeOutput(
      parts.map((number) => this.#collector.partOf(number)),
      stop,
      '',
    );
    for (const number of parts) this.#items.delete(number);
    return this.#event('response.output_item.done', { output_index: index, item: { ...item, id } });
  }

  /** An error before the first event is one of the call, later ones are those of the response. */
  #error(error: ChatError): string {
    const { message, param = null } = error;
    const code = openAiCode(error.code);
    if (!this.#hasStarted) return this.#event('error', { code, message, param });
    const { answers, ...head } = this.#collector.response();
    const response = {
      ...responseObject(head, this.#request),
      status: 'failed',
      error: { code: code ?? 'server_error', message },
      output: writeOutput(answers[0]?.parts ?? [], 'stop', head.id),
    };
    return this.#event('response.failed', { response });
  }
}

/** A tool call or reasoning without its text. */
function startOf(part: AnswerPart): Json {
  const empty = part.type === 'toolCall' ? { ...part, arguments: '' } : part;
  const [item] = writeOutput([empty], 'stop', '');
  const { id: _, ...members } = item ?? {};
  return members;
}
