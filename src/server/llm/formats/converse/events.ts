import { jsonIn } from '../../../../core/foreign.ts';
import type { ChatEvent, ChatUsage, StartedPart } from '../../chat/chat.ts';
import { type EventReader, type Json, Untranslatable } from '../../chat/chat-format.ts';
import { countOf, firstMember, isEmpty, objectOf, requiredName, textOf } from '../../chat/event-data.ts';
import { newId } from '../../chat/new-id.ts';
import { largerUsage } from '../../usage.ts';
import { readError, readStop, readUsage } from './response.ts';

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
  /** Read at the end: what a failed answer costs follows its reason. */
  #reason: unknown;
  usage: ChatUsage | undefined;
  #hasFailed = false;

  read(data: string, type = ''): ChatEvent[] {
    const event = objectOf(jsonIn(data)) ?? {};
    const index = countOf(event['contentBlockIndex']) ?? 0;
    if (type.startsWith('exception:')) return this.#fail(type.slice('exception:'.length), event);
    switch (type) {
      case 'messageStart':
        return [{ type: 'start', id: newId(), model: '' }];
      case 'contentBlockStart':
        return this.#start(index, objectOf(event['start']) ?? {});
      case 'contentBlockDelta':
        return this.#delta(index, objectOf(event['delta']) ?? {});
      case 'contentBlockStop':
        return this.#close(index);
      case 'messageStop':
        this.#reason = event['stopReason'];
        return [];
      case 'metadata':
        this.usage = largerUsage(this.usage, readUsage(event['usage']));
        return [];
      default:
        // Types that are added later.
        return [];
    }
  }

  end(): ChatEvent[] {
    if (this.#hasFailed || this.#reason === undefined) return [];
    return [
      { type: 'answerEnd', answer: 0, stop: readStop(this.#reason) },
      { type: 'end', ...(this.usage === undefined ? {} : { usage: this.usage }) },
    ];
  }

  #fail(name: string, event: Json): ChatEvent[] {
    this.#hasFailed = true;
    const status = STATUSES.get(name) ?? 500;
    return [{ type: 'error', error: { ...readError(event, status), code: name } }];
  }

  #start(index: number, { toolUse, ...others }: Json): ChatEvent[] {
    const other = firstMember(others);
    if (other !== undefined) throw new Untranslatable(`contentBlockStart.start.${other}`);
    if (isEmpty(toolUse)) return [];
    const { toolUseId, name } = objectOf(toolUse) ?? {};
    return this.#open(index, {
      type: 'toolCall',
      id: textOf(toolUseId) ?? newId(),
      name: requiredName(name, 'contentBlockStart.start.toolUse.name'),
    });
  }

  #delta(index: number, { text, toolUse, reasoningContent, ...others }: Json): ChatEvent[] {
    if (typeof text === 'string') return this.#text(index, { type: 'text' }, text);
    if (!isEmpty(toolUse)) {
      const { input } = objectOf(toolUse) ?? {};
      return typeof input === 'string' ? this.#text(index, undefined, input) : [];
    }
    if (!isEmpty(reasoningContent)) return this.#reasoning(index, objectOf(reasoningContent) ?? {});
    const other = firstMember(others);
    if (other === undefined) return [];
    throw new Untranslatable(`contentBlockDelta.delta.${other}`, 'other formats have no such content');
  }

  #reasoning(index: number, { text, signature, redactedContent }: Json): ChatEvent[] {
    const started: StartedPart = { type: 'reasoning', origin: 'converse' };
    if (typeof text === 'string') return this.#text(index, started, text);
    const open = this.#blocks.get(index);
    const opened = open === undefined ? this.#open(index, started) : [];
    const part = open ?? this.#parts - 1;
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
