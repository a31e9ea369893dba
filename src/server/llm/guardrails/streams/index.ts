import type { FormatKey } from '../../formats/index.ts';
import { chatEvents } from './chat-events.ts';
import { generateContentEvents } from './generate-content-events.ts';
import { messagesEvents } from './messages-events.ts';
import { responsesEvents } from './responses-events.ts';
import type { StreamFormat } from './stream-format.ts';

/** Formats whose streams guardrails can read. Streams of other formats are rejected. */
export const streamFormats: Partial<Record<FormatKey, StreamFormat>> = {
  completions: chatEvents,
  textCompletions: chatEvents,
  messages: messagesEvents,
  responses: responsesEvents,
  generateContent: generateContentEvents,
};
