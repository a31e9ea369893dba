import type { Position, Range } from '../diagnostic.ts';

/** Converts offsets of a text to lines and columns. A line ends at LF, so CRLF counts as one break. */
export class LineIndex {
  readonly #text: string;
  readonly #starts: number[] = [0];
  /** The text before this offset is indexed. Indexing on demand keeps a refused 50 MB file cheap. */
  #indexed = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The position of `offset`; an offset outside of the text is clamped. */
  position(offset: number): Position {
    const clamped = Math.min(Math.max(offset, 0), this.#text.length);
    this.#indexUpTo(clamped);
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= clamped) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: clamped - (this.#starts[low] ?? 0) + 1, offset: clamped };
  }

  /** The half-open range `[start, end)`. */
  range(start: number, end: number): Range {
    return { start: this.position(start), end: this.position(Math.max(start, end)) };
  }

  #indexUpTo(offset: number): void {
    while (this.#indexed < offset) {
      const feed = this.#text.indexOf('\n', this.#indexed);
      this.#indexed = feed === -1 ? this.#text.length : feed + 1;
      if (feed !== -1) this.#starts.push(this.#indexed);
    }
  }
}
