import { expect, test } from 'vitest';
import { TokenBucket } from '../../../../src/server/policies/limits/token-bucket.ts';
import { TokenLeases } from '../../../../src/server/policies/limits/token-leases.ts';

test.each([1, 2, 3, 5])(
  'requests that arrive while an answer is processed get no more than the %d tokens of the bucket',
  async (tokens) => {
    const lowest = new TokenBucket(tokens, 1, 3_600_000, performance.now());
    let granted = 0;
    const grant = async () => {
      if (granted === tokens) return { isDenied: true, lowest, count: 0 };
      granted += 1;
      return { isDenied: false, lowest, count: 1 };
    };
    const leases = new TokenLeases({ take: grant, lease: grant, giveBack: () => undefined });
    const replies = [leases.take(['ann'])];
    // One request in each step of the microtasks in which an answer is processed.
    for (let step = 0; step < 30; step++) {
      await Promise.resolve();
      replies.push(leases.take(['ann']));
    }
    const admitted = (await Promise.all(replies)).filter(({ isDenied }) => !isDenied);
    leases.close();
    expect(admitted).toHaveLength(tokens);
  },
);
