import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { ListPages } from '../../../../src/server/mcp/connection/list-pages.ts';
import { UpstreamStatusError } from '../../../../src/server/mcp/connection/target-failure.ts';
import { RpcError } from '../../../../src/server/mcp/protocol/protocol.ts';

/** Reads a page with these names. */
function page(pages: ListPages, result: unknown, ...names: string[]): string {
  for (const name of names) pages.isNew(name);
  return pages.next(result, names.length);
}

describe('the pages of a list', () => {
  test.each([
    [{}],
    [{ nextCursor: null }],
    [{ nextCursor: true }],
    [{ nextCursor: ['a'] }],
    [null],
    [7],
    ['nextCursor'],
    [undefined],
  ])('a page with %j is the last one', (result) => {
    const pages = new ListPages();
    expect([page(pages, result, 'a'), pages.cursor]).toEqual(['end', undefined]);
  });

  test.each([['b'], [''], [7], [0]])('a page with the cursor %j is followed by another one', (nextCursor) => {
    const pages = new ListPages();
    expect([page(pages, { nextCursor }, 'a'), pages.cursor]).toEqual(['more', nextCursor]);
  });

  test('a list ends with a cursor that it has had, where 1 and "1" are two', () => {
    const pages = new ListPages();
    expect(page(pages, { nextCursor: 1 }, 'a')).toBe('more');
    expect(page(pages, { nextCursor: '1' }, 'b')).toBe('more');
    expect(page(pages, { nextCursor: 1 }, 'c')).toBe('end');
  });

  test('a list ends with a page of which every name is known, and goes on after an empty one', () => {
    const pages = new ListPages();
    expect(page(pages, { nextCursor: 'b' }, 'a', 'b')).toBe('more');
    expect(page(pages, { nextCursor: 'c' })).toBe('more');
    expect(page(pages, { nextCursor: 'd' }, 'b', 'c')).toBe('more');
    expect(page(pages, { nextCursor: 'e' }, 'a', 'c')).toBe('end');
  });

  test('a name is new once', () => {
    const pages = new ListPages();
    expect([pages.isNew('a'), pages.isNew('a'), pages.isNew('constructor'), pages.isNew('b')]).toEqual([
      true,
      false,
      true,
      true,
    ]);
  });

  test('too many pages and a cursor that is too long are problems of the target', () => {
    const pages = new ListPages();
    for (let at = 1; at < LIMITS.listPages; at += 1)
      expect(page(pages, { nextCursor: `c${at}` }, `n${at}`)).toBe('more');
    expect(page(pages, { nextCursor: 'last' }, 'n')).toBe(`has more than ${LIMITS.listPages} pages`);
    const nextCursor = 'x'.repeat(LIMITS.cursorLength);
    expect(page(new ListPages(), { nextCursor }, 'a')).toBe(
      `sent a cursor over ${LIMITS.cursorLength} characters`,
    );
    expect(page(new ListPages(), { nextCursor: nextCursor.slice(2) }, 'a')).toBe('more');
  });

  test.each([
    ['', new RpcError(-32602, 'no such cursor'), true],
    ['', new UpstreamStatusError(400, {}, ''), true],
    ['', new Error('the connection broke'), false],
    [7, new RpcError(-32602, 'expected a string'), true],
    ['b', new RpcError(-32602, 'no such cursor'), false],
  ])('after the cursor %j, %s means that the list has ended: %s', (nextCursor, error, isEnd) => {
    const pages = new ListPages();
    page(pages, { nextCursor }, 'a');
    expect(pages.isEnd(error)).toBe(isEnd);
  });
});
