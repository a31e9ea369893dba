import type { ChatRequest } from '../chat/chat.ts';
import type { CallTarget, ChatFormat, Json, ProviderChatFormat } from '../chat/chat-format.ts';
import { nameMember } from '../chat/refusals.ts';

/**
 * Translates the body of a request. Throws `Untranslatable`, which names the member as the client knows it, if the body
 * is not valid or has something that `to` cannot express.
 */
export function translateRequest(
  from: ChatFormat,
  to: ProviderChatFormat,
  body: Json,
  target: CallTarget,
): { readonly request: ChatRequest; readonly body: Json } {
  const request = from.readRequest(body, target);
  try {
    return { request, body: to.writeRequest(request) };
  } catch (error) {
    throw nameMember(error, from.memberNames);
  }
}
