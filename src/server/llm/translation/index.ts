import { chatCompletions } from './chat-completions/index.ts';
import type { ChatFormat } from './chat-format.ts';
import { converse } from './converse/index.ts';
import { generateContent } from './generate-content/index.ts';
import { messages } from './messages/index.ts';
import { responses } from './responses/index.ts';

/** The wire formats that chats are translated between. */
export const chatFormats: readonly ChatFormat[] = [
  chatCompletions,
  messages,
  responses,
  generateContent,
  converse,
];
