import type { TraceEvent } from '../../../core/trace/event.ts';

// Server-sent events in the form that readers of `/debug/trace` expect: `data: ` with its space, a single line, never
// `event:` or `id:`.

/** Sent first: the watcher is registered. */
export const READY_FRAME = ': ready\n\n';
/** Sent every second, also between events. */
export const KEEPALIVE_FRAME = ': keepalive\n\n';

/** Marks the last event of one request in a stream of several. A comment, which other readers ignore. */
export function endFrame(requestId: string): string {
  return `: end ${requestId}\n\n`;
}

// Characters that could control a terminal or reorder its text.
const TERMINAL = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Formats one event. Characters that could control a terminal are JSON escapes, so raw output is safe to print. */
export function eventFrame(event: TraceEvent): string {
  return `data: ${eventJson(event)}\n\n`;
}

function eventJson(event: TraceEvent): string {
  try {
    // JSON.stringify already escapes the control characters below U+0020.
    return JSON.stringify(event).replace(
      TERMINAL,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  } catch {
    return JSON.stringify({
      type: 'serialization_error',
      error: 'the event could not be serialized as JSON',
    });
  }
}
