import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { Link } from '../../../src/server/workers/link.ts';

/** Sends messages of every shape, then the answer. */
const OTHER = `
  const odd = [null, 1, true, {}, { id: 1, call: 'noted', args: [] }, [null], [1], ['x'], [[]], [{}], [{ id: null }],
    [{ id: '1', result: 'wrong' }], [{ id: {}, call: 'noted', args: [] }], [{ id: 0, call: 1, args: [] }],
    [{ id: 0, call: 'missing', args: [] }], [{ id: 0, call: 'noted', args: null }], [{ id: 99, result: 1 }],
    [{ id: 98, error: {} }]];
  process.on('message', ([{ id }]) => {
    for (const message of odd) process.send(message);
    process.send([{ id, result: 'answer' }]);
  });`;

// process.send is also called by packages that find it (pm2 and its imitators: `process.send('ready')`, objects of their own).
test('messages of a worker that are no calls or answers are left out, and later ones arrive', async () => {
  const child = spawn(process.execPath, ['-e', OTHER], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const noted: unknown[][] = [];
  const link = new Link<{ noted(...args: never[]): void }, { ask(): string }>(child, {
    noted: (...args) => void noted.push(args),
  });
  try {
    expect(await link.call('ask')).toBe('answer');
    expect(noted).toEqual([[]]);
  } finally {
    link.close();
    child.kill();
    await once(child, 'exit');
  }
});
