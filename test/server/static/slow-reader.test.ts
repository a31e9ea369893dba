import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import type { Dispatcher } from 'undici';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { UpstreamBody } from '../../../src/server/transport/upstream/upstream-body.ts';

// Fake timers, because the limit is 30 seconds.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A body for a reader that takes nothing until the test drains it. */
function slowReader(): { body: UpstreamBody; reader: PassThrough; log: string[] } {
  const log: string[] = [];
  const controller = {
    pause: () => log.push('pause'),
    resume: () => log.push('resume'),
    abort: () => log.push('abort'),
  } as unknown as Dispatcher.DispatchController;
  const body = new UpstreamBody(controller);
  const reader = new PassThrough({ highWaterMark: 10 });
  body.attach(Object.assign(reader, { flushHeaders: () => undefined }) as unknown as ServerResponse);
  log.length = 0;
  return { body, reader, log };
}

const drained = (reader: PassThrough): Promise<void> =>
  new Promise((resolve) => {
    reader.once('drain', resolve);
    reader.resume();
  });

describe('slow reader', () => {
  test('a reader that takes nothing pauses the backend and is disconnected after LIMITS.writeStall', async () => {
    const { body, reader, log } = slowReader();
    body.push(Buffer.alloc(100));
    expect(log).toEqual(['pause']);
    vi.advanceTimersByTime(LIMITS.writeStall - 1);
    expect(reader.destroyed).toBe(false);
    const closed = new Promise((resolve) => reader.once('close', resolve));
    vi.advanceTimersByTime(1);
    expect(reader.destroyed).toBe(true);
    await closed;
    expect(log).toEqual(['pause', 'abort']);
  });

  test('a reader that resumes in time is not disconnected', async () => {
    const { body, reader, log } = slowReader();
    body.push(Buffer.alloc(100));
    await drained(reader);
    expect(log).toEqual(['pause', 'resume']);
    vi.advanceTimersByTime(2 * LIMITS.writeStall);
    expect(reader.destroyed).toBe(false);
  });

  test('a reader that resumes in time is not disconnected after several chunks', async () => {
    const { body, reader } = slowReader();
    body.push(Buffer.alloc(100));
    body.push(Buffer.alloc(100));
    await drained(reader);
    vi.advanceTimersByTime(2 * LIMITS.writeStall);
    expect(reader.destroyed).toBe(false);
  });
});
