import type { ChatError } from '../chat.ts';
import { type Json, Untranslatable } from '../chat-format.ts';

export function readError(_body: unknown, _status: number): ChatError {
  throw new Untranslatable('chatCompletions errors');
}

export function writeError(_error: ChatError): Json {
  throw new Untranslatable('chatCompletions errors');
}
