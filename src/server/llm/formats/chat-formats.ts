import type { ChatFormat, ProviderChatFormat } from '../chat/chat-format.ts';
import { chatCompletions } from './chat-completions/chat-format.ts';
import { converse } from './converse/index.ts';
import { generateContent } from './generate-content/chat-format.ts';
import { messages } from './messages/chat-format.ts';
import { responses } from './responses/chat-format.ts';

/** The wire formats of clients that chats are translated from. */
export const chatFormats: readonly ChatFormat[] = [chatCompletions, messages, responses, generateContent];

/** The wire formats of providers that chats are translated to. */
export const providerChatFormats: readonly ProviderChatFormat[] = [...chatFormats, converse];
