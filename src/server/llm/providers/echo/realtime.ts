import { randomUUID } from 'node:crypto';
import { jsonIn, shownValue } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import { deltasOf, echoWords, flatText } from './words.ts';

// Realtime API of OpenAI, "Client events" and "Server events".

/** An answer is in six events, so a longer prompt is not repeated to its end. Characters. */
const LONGEST = 16_384;

/** The conversation of one realtime session. It repeats the last text of the user; recordings are received, not heard. */
export class EchoConversation {
  readonly #model: string;
  #session: Members;
  #prompt = '';
  #lastItem: string | null = null;

  constructor(model: string) {
    this.#model = model;
    this.#session = {
      type: 'realtime',
      object: 'realtime.session',
      id: idOf('sess'),
      model,
      output_modalities: ['text'],
    };
  }

  /** The first event of a session. */
  start(): object[] {
    return [event('session.created', { session: this.#session })];
  }

  /** The events that answer a message of the client. */
  answer(message: string): object[] {
    const received = membersOf(jsonIn(message));
    if (received === undefined) return [refusal('invalid_json', 'The event is not a JSON object.')];
    const { type, event_id: id } = received;
    switch (type) {
      case 'session.update':
        // The model is that of the URL, which was authorized.
        this.#session = { ...this.#session, ...membersOf(received['session']), model: this.#model };
        return [event('session.updated', { session: this.#session })];
      case 'conversation.item.create':
        return this.#create(membersOf(received['item']) ?? {});
      case 'input_audio_buffer.append':
        return [];
      case 'input_audio_buffer.clear':
        return [event('input_audio_buffer.cleared', {})];
      case 'input_audio_buffer.commit':
        return this.#commit();
      case 'response.create':
        return this.#respond(membersOf(received['response'])?.['max_output_tokens']);
      default:
        return [refusal('invalid_value', `The echo model does not support the event ${shown(type)}.`, id)];
    }
  }

  #create(item: Members): object[] {
    const id = typeof item['id'] === 'string' ? item['id'] : idOf('item');
    if (item['role'] === 'user') this.#prompt = flatText(item['content']).slice(0, LONGEST);
    if (item['type'] === 'function_call_output') this.#prompt = shownValue(item['output']).slice(0, LONGEST);
    return this.#add({ object: 'realtime.item', status: 'completed', ...item, id });
  }

  #commit(): object[] {
    const id = idOf('item');
    this.#prompt = 'The recording was received.';
    const item = { id, object: 'realtime.item', type: 'message', role: 'user', status: 'completed' };
    return [
      event('input_audio_buffer.committed', { previous_item_id: this.#lastItem, item_id: id }),
      ...this.#add({ ...item, content: [{ type: 'input_audio', transcript: null }] }),
    ];
  }

  #add(item: Members): object[] {
    const members = { previous_item_id: this.#lastItem, item };
    this.#lastItem = shownValue(item['id']);
    return [event('conversation.item.added', members), event('conversation.item.done', members)];
  }

  #respond(limit: unknown): object[] {
    const output = echoWords(this.#prompt, limit);
    const text = output.words.join(' ');
    const [response_id, item_id] = [idOf('resp'), idOf('item')];
    const place = { response_id, item_id, output_index: 0, content_index: 0 };
    const part = { type: 'output_text', text };
    const message = { id: item_id, object: 'realtime.item', type: 'message', role: 'assistant' };
    const started = { ...message, status: 'in_progress', content: [] };
    const item = { ...message, status: output.isCut ? 'incomplete' : 'completed', content: [part] };
    const response = { object: 'realtime.response', id: response_id, output_modalities: ['text'] };
    const previous = { previous_item_id: this.#lastItem };
    this.#lastItem = item_id;
    return [
      event('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
      event('response.output_item.added', { response_id, output_index: 0, item: started }),
      event('conversation.item.added', { ...previous, item: started }),
      event('response.content_part.added', { ...place, part: { type: 'output_text', text: '' } }),
      ...deltasOf(output).map((delta) => event('response.output_text.delta', { ...place, delta })),
      event('response.output_text.done', { ...place, text }),
      event('response.content_part.done', { ...place, part }),
      event('response.output_item.done', { response_id, output_index: 0, item }),
      event('conversation.item.done', { ...previous, item }),
      event('response.done', {
        response: {
          ...response,
          status: item.status,
          output: [item],
          usage: {
            input_tokens: output.promptWords,
            output_tokens: output.words.length,
            total_tokens: output.promptWords + output.words.length,
          },
        },
      }),
    ];
  }
}

const idOf = (kind: string): string => `${kind}_${randomUUID()}`;

const event = (type: string, members: object): object => ({ type, event_id: idOf('event'), ...members });

function refusal(code: string, message: string, eventId?: unknown): object {
  const cause = typeof eventId === 'string' ? eventId.slice(0, SHOWN) : null;
  return event('error', {
    error: { type: 'invalid_request_error', code, message, param: null, event_id: cause },
  });
}

/** Characters of a client's text in an error. */
const SHOWN = 100;

const shown = (type: unknown): string =>
  typeof type === 'string' ? `\`${type.slice(0, SHOWN)}\`` : 'without type';
