import type { ChatRequest } from '../chat.ts';
import { type EventReader, type EventWriter, Untranslatable } from '../chat-format.ts';

export function eventReader(): EventReader {
  throw new Untranslatable('chatCompletions streams');
}

export function eventWriter(_request: ChatRequest): EventWriter {
  throw new Untranslatable('chatCompletions streams');
}
