import type { ChatRequest, ChatResponse } from '../chat.ts';
import { type Json, Untranslatable } from '../chat-format.ts';

export function readResponse(_body: Json): ChatResponse {
  throw new Untranslatable('responses responses');
}

export function writeResponse(_response: ChatResponse, _request: ChatRequest): Json {
  throw new Untranslatable('responses responses');
}
