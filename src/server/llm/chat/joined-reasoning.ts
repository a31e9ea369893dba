import { elementsOf, jsonIn } from '../../../core/foreign.ts';
import type { ReasoningPart } from './chat.ts';
import { packReasoning, unpackReasoning } from './reasoning-state.ts';
import { SEPARATOR } from './turns.ts';

/**
 * Chat Completions has one text for all reasoning of an answer, and the gateway adds one opaque text. Providers verify each signature
 * with its own text, so that of several ones says where each begins and ends (maximhq/bifrost#5274):
 *
 *     agctl1s:[[<start>,<end>,<what `packReasoning` makes of it, or null>],…]
 */
const SEVERAL = 'agctl1s:';

/** One reasoning part in the joined text. */
interface Piece {
  start: number;
  end: number;
  /** What its provider wants back. */
  state: string | undefined;
}

/** Joins the reasoning of one answer. */
export class JoinedReasoning {
  readonly #pieces: Piece[] = [];
  #length = 0;

  /** Begins the next part. */
  begin(): Piece {
    const piece = { start: this.#length, end: this.#length, state: undefined };
    this.#pieces.push(piece);
    return piece;
  }

  /** More text of a part; returns what is added to the joined text. */
  add(piece: Piece, text: string): string {
    const isFirst = piece.start === piece.end;
    const gap = isFirst && this.#length > 0 && text !== '' ? SEPARATOR : '';
    if (isFirst) piece.start = this.#length + gap.length;
    this.#length += gap.length + text.length;
    piece.end = this.#length;
    return gap + text;
  }

  /** Ends a part. */
  end(piece: Piece, part: ReasoningPart): void {
    piece.state = packReasoning(part);
  }

  /** The opaque text for the client; undefined if no provider wants anything back. */
  state(): string | undefined {
    if (this.#pieces.length < 2) return this.#pieces[0]?.state;
    if (this.#pieces.every(({ state }) => state === undefined)) return undefined;
    return SEVERAL + JSON.stringify(this.#pieces.map(({ start, end, state }) => [start, end, state ?? null]));
  }
}

/** The parts that were joined. A text that the client has changed belongs to no signature: it is one part, of no provider. */
export function splitReasoning(text: string, state: string): ReasoningPart[] {
  if (!state.startsWith(SEVERAL)) return [{ type: 'reasoning', text, ...unpackReasoning(state) }];
  const pieces = elementsOf(jsonIn(state.slice(SEVERAL.length))).map(elementsOf);
  const isWhole = pieces.at(-1)?.[1] === text.length;
  if (!isWhole) return [{ type: 'reasoning', text }];
  return pieces.map(([start, end, packed]) => ({
    type: 'reasoning',
    text: typeof start === 'number' && typeof end === 'number' ? text.slice(start, end) : '',
    ...(typeof packed === 'string' ? unpackReasoning(packed) : {}),
  }));
}
