import type { ChatRequest } from '../chat.ts';
import { type Json, Untranslatable } from '../chat-format.ts';

export function readRequest(_body: Json): ChatRequest {
  throw new Untranslatable('messages requests');
}

export function writeRequest(_request: ChatRequest): Json {
  throw new Untranslatable('messages requests');
}
