import { jsonIn } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import type {
  ChatError,
  ChatEvent,
  ChatRequest,
  ChatUsage,
  ReasoningPart,
  StartedPart,
  StopReason,
  TextPart,
} from '../../chat/chat.ts';
import { type EventReader, type EventWriter, type Json, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { answerIndex, isEmpty, objectOf, objectsOf } from '../../chat/event-data.ts';
import { largerUsage } from '../../usage.ts';
import { readError, writeError } from './error.ts';
import { isBlocked, type ReadPart, readPart, refusalOf, writeCall, writeCreateTime } from './response.ts';
import { readStop, writeStop } from './stop.ts';
import { writeThoughtSignature } from './thought-signature.ts';
import { readUsage, writeUsage } from './usage.ts';

export const eventReader = (): EventReader => new GenerateContentReader();
export const eventWriter = (_request: ChatRequest): EventWriter => new GenerateContentWriter();

/** What is known of one candidate. */
interface Candidate {
  /** The open part: the next text of the same type continues it. */
  open?: { readonly part: number; readonly type: 'text' | 'reasoning' };
  hasToolCalls: boolean;
  hasEnded: boolean;
}

/** Every event is a response with the next parts; the last one of a candidate has its `finishReason`. */
class GenerateContentReader implements EventReader {
  readonly #candidates = new Map<number, Candidate>();
  #parts = 0;
  #hasStarted = false;
  usage: ChatUsage | undefined;
  #hasFailed = false;

  read(data: string): ChatEvent[] {
    const body = objectOf(jsonIn(data));
    if (body === undefined) return [];
    if (!isEmpty(body['error'])) return this.#fail(readError(body, 500));
    const events: ChatEvent[] = this.#hasStarted ? [] : [start(body)];
    this.#hasStarted = true;
    // Cumulative in every event.
    this.usage = largerUsage(this.usage, readUsage(body['usageMetadata']));
    for (const each of objectsOf(body['candidates'])) events.push(...this.#candidate(each));
    if (isBlocked(body) && this.#candidates.size === 0) {
      this.#candidates.set(0, { hasToolCalls: false, hasEnded: true });
      events.push({ type: 'answerEnd', answer: 0, stop: 'filter' });
    }
    return events;
  }

  end(): ChatEvent[] {
    const all = [...this.#candidates.values()];
    const isCutOff = all.length === 0 || all.some(({ hasEnded }) => !hasEnded);
    if (this.#hasFailed || isCutOff) return [];
    return [{ type: 'end', ...(this.usage === undefined ? {} : { usage: this.usage }) }];
  }

  #fail(error: ChatError): ChatEvent[] {
    this.#hasFailed = true;
    return [{ type: 'error', error }];
  }

  #candidate({ index, content, finishReason, finishMessage }: Json): ChatEvent[] {
    const answer = answerIndex(index, 'candidates.index');
    const state = this.#candidates.get(answer) ?? { hasToolCalls: false, hasEnded: false };
    this.#candidates.set(answer, state);
    const parts = objectsOf(objectOf(content)?.['parts']).flatMap(readPart);
    const events = parts.flatMap((part) => this.#part(answer, state, part));
    if (isEmpty(finishReason) || state.hasEnded) return events;
    state.hasEnded = true;
    const stop = readStop(finishReason, finishMessage, state.hasToolCalls);
    const refusal = refusalOf(stop, finishMessage);
    return [
      ...events,
      ...this.#close(state),
      ...(refusal === undefined ? [] : this.#whole(answer, { type: 'refusal' }, refusal.text)),
      { type: 'answerEnd', answer, stop },
    ];
  }

  #part(answer: number, state: Candidate, part: ReadPart): ChatEvent[] {
    if (part.type === 'toolCall') {
      state.hasToolCalls = true;
      const { id, name, arguments: text } = part;
      return [...this.#close(state), ...this.#whole(answer, { type: 'toolCall', id, name }, text)];
    }
    const events = this.#text(answer, state, part);
    if (part.type === 'text' || part.signature === undefined || state.open === undefined) return events;
    // The next thought has its own signature.
    return [
      ...events,
      { type: 'signature', part: state.open.part, signature: part.signature },
      ...this.#close(state),
    ];
  }

  #text(answer: number, state: Candidate, { type, text }: TextPart | ReasoningPart): ChatEvent[] {
    if (state.open?.type === type) return [{ type: 'delta', part: state.open.part, text }];
    const closed = this.#close(state);
    const opened = this.#open(
      answer,
      type === 'text' ? { type } : { type, isSummary: true, origin: 'generateContent' },
    );
    state.open = { part: opened.part, type };
    return [...closed, opened, { type: 'delta', part: opened.part, text }];
  }

  #whole(answer: number, content: StartedPart, text: string): ChatEvent[] {
    const opened = this.#open(answer, content);
    return [opened, { type: 'delta', part: opened.part, text }, { type: 'partEnd', part: opened.part }];
  }

  #open(answer: number, content: StartedPart): ChatEvent & { type: 'partStart' } {
    const part = this.#parts;
    this.#parts += 1;
    return { type: 'partStart', part, answer, content };
  }

  #close(state: Candidate): ChatEvent[] {
    const { open } = state;
    if (open === undefined) return [];
    delete state.open;
    return [{ type: 'partEnd', part: open.part }];
  }
}

function start({ responseId, modelVersion, createTime }: Json): ChatEvent {
  const created = typeof createTime === 'string' ? Date.parse(createTime) : Number.NaN;
  return {
    type: 'start',
    id: typeof responseId === 'string' ? responseId : '',
    model: typeof modelVersion === 'string' ? modelVersion : '',
    ...(Number.isNaN(created) ? {} : { created: Math.floor(created / 1000) }),
  };
}

interface OpenPart {
  readonly answer: number;
  readonly content: StartedPart;
  /** Arguments of a tool call, which is written as a whole. */
  written: string;
  hasEnded: boolean;
}

/** Writes the stream of `alt=sse`. Stop reasons and token counts are in the last event, as in Google's streams. */
class GenerateContentWriter implements EventWriter {
  readonly #parts = new Map<number, OpenPart>();
  readonly #ends = new Map<number, StopReason>();
  /** Type of the last part that began, by answer. */
  readonly #last = new Map<number, StartedPart['type']>();
  #head: Json = {};

  write(event: ChatEvent): string {
    switch (event.type) {
      case 'start':
        this.#head = { modelVersion: event.model, responseId: event.id, ...writeCreateTime(event.created) };
        return '';
      case 'partStart':
        return this.#partStart(event.part, event.answer, event.content);
      case 'delta':
        return this.#delta(event.part, event.text);
      case 'signature':
        return this.#signature(event.part, { signature: event.signature });
      case 'encrypted':
        return this.#signature(event.part, { encrypted: event.encrypted });
      case 'partEnd':
        return this.#partEnd(event.part);
      case 'answerEnd':
        this.#ends.set(event.answer, event.stop);
        return '';
      case 'end':
        return this.#end(event.usage);
      case 'error':
        return sse(writeError(event.error));
      case 'ping':
        // A comment: Google's streams have no event for this.
        return ':\n\n';
    }
  }

  #partStart(part: number, answer: number, content: StartedPart): string {
    this.#parts.set(part, { answer, content, written: '', hasEnded: false });
    const before = this.#last.get(answer);
    this.#last.set(answer, content.type);
    if (content.type !== 'reasoning') return '';
    // For the reader, thoughts in a row are one: it gets the paragraphs of a whole response.
    const gap = before === 'reasoning' ? this.#delta(part, '\n\n') : '';
    return gap + this.#signature(part, content);
  }

  /** A thought without text, which carries the signature of the ones before it. */
  #signature(part: number, state: { readonly signature?: string; readonly encrypted?: string }): string {
    const open = this.#parts.get(part);
    const { signature, encrypted } = state;
    if (open?.content.type !== 'reasoning' || (signature ?? encrypted) === undefined) return '';
    const { origin, id } = open.content;
    const thoughtSignature = writeThoughtSignature(
      defined({ type: 'reasoning' as const, text: '', signature, encrypted, origin, id }),
    );
    return thoughtSignature === undefined
      ? ''
      : this.#part(open.answer, { text: '', thought: true, thoughtSignature });
  }

  #delta(part: number, text: string): string {
    const open = this.#parts.get(part);
    if (open === undefined || text === '') return '';
    if (open.content.type !== 'toolCall')
      return this.#part(open.answer, open.content.type === 'reasoning' ? { text, thought: true } : { text });
    open.written += text;
    if (open.written.length > LIMITS.responseBodyBytes)
      throw new Untranslatable(
        `the arguments of the call of ${JSON.stringify(open.content.name)}`,
        'too long',
      );
    return '';
  }

  /** Calls are written in the order in which they began: clients tell those of one tool apart by it. */
  #partEnd(part: number): string {
    const ended = this.#parts.get(part);
    if (ended === undefined) return '';
    ended.hasEnded = true;
    let text = '';
    for (const [index, each] of this.#parts) {
      if (each.answer !== ended.answer) continue;
      if (!each.hasEnded) break;
      this.#parts.delete(index);
      if (each.content.type === 'toolCall')
        text += this.#part(each.answer, writeCall({ ...each.content, arguments: each.written }));
    }
    return text;
  }

  #part(index: number, part: Json): string {
    return sse({ candidates: [{ content: { role: 'model', parts: [part] }, index }], ...this.#head });
  }

  #end(usage: ChatUsage | undefined): string {
    const candidates = [...this.#ends].map(([index, stop]) => ({
      content: { role: 'model', parts: [{ text: '' }] },
      finishReason: writeStop(stop),
      index,
    }));
    const counted = usage === undefined ? {} : { usageMetadata: writeUsage(usage) };
    return sse({ candidates, ...counted, ...this.#head });
  }
}

const sse = (value: Json): string => `data: ${JSON.stringify(value)}\n\n`;
