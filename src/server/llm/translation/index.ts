import { chatCompletions } from './chat-completions/index.ts';
import type { ChatFormat, ProviderChatFormat } from './chat-format.ts';
import { converse } from './converse/index.ts';
import { generateContent } from './generate-content/index.ts';
import { messages } from './messages/index.ts';
import { responses } from './responses/index.ts';

/** The wire formats of clients that chats are translated from. */
export const chatFormats: readonly ChatFormat[] = [chatCompletions, messages, responses, generateContent];

/** The wire formats of providers that chats are translated to. */
export const providerChatFormats: readonly ProviderChatFormat[] = [...chatFormats, converse];
