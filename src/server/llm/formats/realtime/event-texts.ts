import { elementsOf, textIn } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import { ALL, type EventOrder, type EventTexts, IN_ORDER, type PlacedText } from '../event-texts.ts';
import { responsesEvents } from '../responses/event-texts.ts';

/**
 * Events of a realtime session about one or several responses (OpenAI's Realtime API reference, "Server events"). Their
 * names and texts are those of the Responses API, and the transcript of speech is one more text. Speech itself cannot be
 * checked.
 */
export const realtimeEvents: EventTexts = {
  repeatsTexts: true,
  problem: (event) =>
    hasSpeech(event, textIn(event['type']))
      ? 'speech cannot be checked: set `output_modalities` of the session to ["text"]'
      : undefined,
  output(event) {
    const type = textIn(event['type']);
    return WITHOUT_OUTPUT.test(type) ? withoutEcho(event) : outputOf(event, type);
  },
  isRecording: (event, path) => responsesEvents.isRecording?.(event, path) === true,
  placeOf(event, path) {
    const type = textIn(event['type']);
    if (WITHOUT_OUTPUT.test(type)) return undefined;
    return ofResponse(responsesEvents.placeOf(event, path), textIn(event['response_id']), type);
  },
  orderOf(event, texts) {
    const type = textIn(event['type']);
    if (WITHOUT_OUTPUT.test(type)) return IN_ORDER;
    const order = responsesEvents.orderOf(event, texts);
    return { ...order, ...endOf(order, textIn(event['response_id']), type) };
  },
};

/** Recordings: pieces of a response, or parts of an item. */
function hasSpeech(event: Members, type: string): boolean {
  if (/^response\.(?:output_)?audio\.delta$/.test(type)) return true;
  const item = membersOf(event['item']);
  const items = [item, ...elementsOf(membersOf(event['response'])?.['output'])];
  const parts = [event['part'], ...items.flatMap((each) => elementsOf(membersOf(each)?.['content']))];
  return !isOfClient(item) && parts.some((part) => typeof membersOf(part)?.['audio'] === 'string');
}

/** Settings, and what the user said or recorded. */
const WITHOUT_OUTPUT =
  /^(?:session|transcription_session|input_audio_buffer|output_audio_buffer|rate_limits|conversation\.created)\b|^conversation\.item\.input_audio_transcription\./;

/** Guardrails for requests have seen the texts of settings and items. Transcripts of the user are not checked. */
function withoutEcho(event: Members): Members {
  const { session: _session, item: _item, transcript: _transcript, delta: _delta, ...rest } = event;
  return rest;
}

const isOfClient = (item: Members | undefined): boolean =>
  item?.['role'] === 'user' || item?.['role'] === 'system' || item?.['type'] === 'function_call_output';

/** Without an item that repeats one of the client. */
function outputOf(event: Members, type: string): Members {
  const { item, ...rest } = event;
  if (item === undefined) return rest;
  const isRepetition = type.startsWith('conversation.item.') && isOfClient(membersOf(item));
  return isRepetition ? rest : { ...rest, item };
}

/** Two responses at the same time have outputs of the same numbers. */
function ofResponse(text: PlacedText = {}, response: string, type: string): PlacedText {
  const { part = 'other', channel, run } = text;
  return {
    ...text,
    part: part === 'other' && SAID.test(type) ? 'content' : part,
    ...(channel !== undefined && { channel: `${response} ${channel}` }),
    ...(channel !== undefined && run !== undefined && { run: `${response} ${run}` }),
  };
}

/** Texts of the former version of the API, and transcripts. */
const SAID = /^response\.(?:text|(?:output_)?audio_transcript)\./;

function endOf({ ends, describes }: EventOrder, response: string, type: string): Partial<EventOrder> {
  if (type === 'response.done') return { ends: [ALL] };
  return {
    ...(ends && { ends: ends.map((channel) => (channel === ALL ? ALL : `${response} ${channel}`)) }),
    ...(describes !== undefined && { describes: `${response} ${describes}` }),
  };
}
