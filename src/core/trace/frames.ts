import type { TraceEvent } from './event.ts';

// Server-sent events as readers of `/debug/trace` expect them: `data: ` with its space, one line, never `event:` or `id:`.

/** First of all: the watcher is registered. */
export const READY_FRAME = ': ready\n\n';
/** Every second, also between events. */
export const KEEPALIVE_FRAME = ': keepalive\n\n';

/** In a stream of several requests: nothing more is told of that one. A comment, which other readers pass over. */
export function endFrame(requestId: string): string {
  return `: end ${requestId}\n\n`;
}

// What could drive a terminal or reorder its text.
const TERMINAL = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** One event as a frame. Characters that could drive a terminal stand as JSON escapes, so raw output is safe to print. */
export function eventFrame(event: TraceEvent): string {
  return `data: ${eventJson(event)}\n\n`;
}

function eventJson(event: TraceEvent): string {
  try {
    // JSON.stringify escapes the characters below a space itself.
    return JSON.stringify(event).replace(
      TERMINAL,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  } catch {
    return JSON.stringify({ type: 'serialization_error', error: 'the event could not be written as JSON' });
  }
}
