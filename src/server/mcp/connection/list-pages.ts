import { LIMITS } from '../../../core/limits.ts';
import { RpcError } from '../protocol/protocol.ts';
import { isErrorStatus } from './target-failure.ts';

/**
 * Follows `nextCursor` through the pages of one list of a server. Servers end a list in several ways: without the member, with
 * null, with an empty string (which revision 2026-07-28 allows as a cursor), or by ignoring the cursor and sending the same page
 * again.
 */
export class ListPages {
  readonly #cursors = new Set<string>();
  readonly #names = new Set<string>();
  #pages = 0;
  #isRepeated = true;
  /** The cursor of the next page; undefined for the first. */
  cursor: string | number | undefined;

  /** Whether no earlier item has that name. Called for each item of a page, before `next`. */
  isNew(name: string): boolean {
    if (this.#names.has(name)) return false;
    this.#names.add(name);
    this.#isRepeated = false;
    return true;
  }

  /**
   * Whether a page follows after the one with `result`, which has `count` items; `cursor` is its cursor then. Any other text says
   * why the page that follows is not requested, with the target as subject.
   */
  next(result: unknown, count: number): string {
    const cursor = cursorIn(result);
    const isRepeated = this.#isRepeated && count > 0;
    this.#pages += 1;
    this.#isRepeated = true;
    // As JSON: 1 and "1" are different cursors.
    const key = JSON.stringify(cursor);
    if (cursor === undefined || isRepeated || this.#cursors.has(key)) return 'end';
    if (this.#pages >= LIMITS.listPages) return `has more than ${LIMITS.listPages} pages`;
    if (key.length > LIMITS.cursorLength) return `sent a cursor over ${LIMITS.cursorLength} characters`;
    this.#cursors.add(key);
    this.cursor = cursor;
    return 'more';
  }

  /** Whether the failed request for the page at `cursor` means that there is none. */
  isEnd(error: unknown): boolean {
    const mayBeNone = this.cursor === '' || typeof this.cursor === 'number';
    return mayBeNone && (error instanceof RpcError || isErrorStatus(error));
  }
}

/** The cursor of the next page. Some servers send numbers, which they get back as numbers. */
function cursorIn(result: unknown): string | number | undefined {
  if (typeof result !== 'object' || result === null || !('nextCursor' in result)) return undefined;
  const { nextCursor } = result;
  return typeof nextCursor === 'string' || typeof nextCursor === 'number' ? nextCursor : undefined;
}
