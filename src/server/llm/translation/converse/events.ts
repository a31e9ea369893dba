import { membersOf, parseOrNothing } from '../../json-members.ts';
import type { ChatEvent, ChatUsage, StartedPart, StopReason } from '../chat.ts';
import { type EventReader, type Json, Untranslatable } from '../chat-format.ts';
import { newId, readError, readStop, readUsage } from './response.ts';

export const eventReader = (): EventReader => new ConverseReader();

/** Statuses of exceptions inside a stream (Bedrock API reference, "ConverseStream", "Errors"). */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ['validationException', 400],
  ['accessDeniedException', 403],
  ['modelTimeoutException', 408],
  ['modelStreamErrorException', 424],
  ['modelNotReadyException', 429],
  ['throttlingException', 429],
  ['internalServerException', 500],
  ['serviceUnavailableException', 503],
]);

class ConverseReader implements EventReader {
  /** The part of each open content block. */
  readonly #blocks = new Map<number, number>();
  #parts = 0;
  #stop: StopReason | undefined;
  #usage: ChatUsage | undefined;
  #hasFailed = false;

  read(data: string, type = ''): ChatEvent[] {
    const event = membersOf(parseOrNothing(data)) ?? {};
    const index = typeof event['contentBlockIndex'] === 'number' ? event['contentBlockIndex'] : 0;
    if (type.startsWith('exception:')) return this.#fail(type.slice('exception:'.length), event);
    switch (type) {
      case 'messageStart':
        return [{ type: 'start', id: newId(), model: '' }];
      case 'contentBlockStart':
        return this.#start(index, membersOf(event['start']) ?? {});
      case 'contentBlockDelta':
        return this.#delta(index, membersOf(event['delta']) ?? {});
      case 'contentBlockStop':
        return this.#close(index);
      case 'messageStop':
        this.#stop = readStop(event['stopReason']);
        return [{ type: 'answerEnd', answer: 0, stop: this.#stop }];
      case 'metadata':
        this.#usage = readUsage(event['usage']);
        return [];
      default:
        // Types that are added later.
        return [];
    }
  }

  end(): ChatEvent[] {
    if (this.#hasFailed || this.#stop === undefined) return [];
    return [{ type: 'end', ...(this.#usage === undefined ? {} : { usage: this.#usage }) }];
  }

  #fail(name: string, event: Json): ChatEvent[] {
    this.#hasFailed = true;
    const status = STATUSES.get(name) ?? 500;
    return [{ type: 'error', error: { ...readError(event, status), code: name } }];
  }

  #start(index: number, { toolUse, ...others }: Json): ChatEvent[] {
    const [other] = Object.keys(others);
    if (other !== undefined) throw new Untranslatable(`contentBlockStart.start.${other}`);
    const { toolUseId, name } = membersOf(toolUse) ?? {};
    if (typeof toolUseId !== 'string' || typeof name !== 'string') return [];
    return this.#open(index, { type: 'toolCall', id: toolUseId, name });
  }

  #delta(index: number, { text, toolUse, reasoningContent, ...others }: Json): ChatEvent[] {
    if (typeof text === 'string') return this.#text(index, { type: 'text' }, text);
    if (toolUse !== undefined) {
      const { input } = membersOf(toolUse) ?? {};
      return typeof input === 'string' ? this.#text(index, undefined, input) : [];
    }
    if (reasoningContent !== undefined) return this.#reasoning(index, membersOf(reasoningContent) ?? {});
    const [other] = Object.keys(others);
    if (other === undefined) return [];
    throw new Untranslatable(`contentBlockDelta.delta.${other}`, 'other formats have no such content');
  }

  #reasoning(index: number, { text, signature, redactedContent }: Json): ChatEvent[] {
    const started: StartedPart = { type: 'reasoning', origin: 'converse' };
    if (typeof text === 'string') return this.#text(index, started, text);
    const opened = this.#blocks.has(index) ? [] : this.#open(index, started);
    const part = this.#blocks.get(index) as number;
    if (typeof signature === 'string') return [...opened, { type: 'signature', part, signature }];
    if (typeof redactedContent === 'string')
      return [...opened, { type: 'encrypted', part, encrypted: redactedContent }];
    return opened;
  }

  /** Adds to a block. Only blocks of tool calls have a start event; `started` is what another one is. */
  #text(index: number, started: StartedPart | undefined, text: string): ChatEvent[] {
    const opened = this.#blocks.has(index) || started === undefined ? [] : this.#open(index, started);
    const part = this.#blocks.get(index);
    if (part === undefined) throw new Untranslatable('contentBlockDelta.delta.toolUse', 'it has no start');
    return [...opened, { type: 'delta', part, text }];
  }

  #open(index: number, content: StartedPart): ChatEvent[] {
    const part = this.#parts;
    this.#parts += 1;
    this.#blocks.set(index, part);
    return [{ type: 'partStart', part, answer: 0, content }];
  }

  #close(index: number): ChatEvent[] {
    const part = this.#blocks.get(index);
    this.#blocks.delete(index);
    return part === undefined ? [] : [{ type: 'partEnd', part }];
  }
}
