import type { Dispatcher } from 'undici';
import { expect, test } from 'vitest';
import { UpstreamBody } from '../../../../src/server/transport/upstream/upstream-body.ts';

test('a body whose sink always pauses and resumes gives the sink no empty chunk, which undici sends when it resumes', async () => {
  let resumed = 0;
  const controller = {
    pause: () => undefined,
    resume: () => {
      resumed += 1;
      // What was seen with a guarded stream of a provider: resumed within one turn of the event loop, without end.
      if (resumed < 100) body.push(Buffer.alloc(0));
    },
  };
  const body = new UpstreamBody(controller as unknown as Dispatcher.DispatchController);
  const pushed: number[] = [];
  body.consume({
    push: (chunk) => {
      pushed.push(chunk.length);
      void Promise.resolve().then(() => body.resume());
      return false;
    },
    end: () => undefined,
    fail: () => undefined,
  });
  body.push(Buffer.from('a'));
  await new Promise(setImmediate);
  expect(pushed).toEqual([1]);
  expect(resumed).toBe(2);
});
