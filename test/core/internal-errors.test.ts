import { expect, test } from 'vitest';
import { createLog } from '../../src/core/log.ts';

/** A log, and the values of `problem` in its lines. */
function logged() {
  const problems: string[] = [];
  const log = createLog(
    {
      write: (line) => void problems.push(JSON.parse(line).problem),
      dropped: 0,
      flush: () => Promise.resolve(),
    },
    'error',
    'json',
  );
  return { log, problems };
}

const errorWith = (message: string): Error => new TypeError(message);

test('an internal error is logged with its class, its message and the frames of its stack', () => {
  const { log, problems } = logged();
  log.internalError('mcp', errorWith('broken'));
  expect(problems).toEqual([expect.stringMatching(/^TypeError: broken\n {4}at errorWith /)]);
});

test.each([
  ['a value without toString', JSON.parse('{"toString":null}'), '{"toString":null}'],
  ['undefined', undefined, 'undefined'],
  ['a text', 'text', 'text'],
  ['a value that has no JSON', { big: 5n }, 'an error that cannot be shown'],
])('%s that was thrown is logged as far as it can be shown', (_, thrown, shown) => {
  const { log, problems } = logged();
  log.internalError('mcp', thrown);
  expect([problems, log.internalErrors]).toEqual([[shown], 1]);
});

test('a message that quotes frames and credentials of a server is cut, and hides no frame', () => {
  const { log, problems } = logged();
  const secret = `${'x'.repeat(230)} password=canary-0123456789`;
  log.internalError('mcp', errorWith(`${secret}\n    at forged (file:1:1)\n${'y'.repeat(10_000)}`));
  const [problem = ''] = problems;
  expect(problem).not.toContain('canary');
  expect(problem).not.toContain('yyy');
  expect(problem).toMatch(/\n {4}at errorWith /);
});

test('errors of one place are logged once and counted, whatever their messages', () => {
  const { log, problems } = logged();
  for (const message of ['a', 'b', 'c']) log.internalError('mcp', errorWith(message));
  expect([problems.length, log.internalErrors]).toEqual([1, 3]);
});
