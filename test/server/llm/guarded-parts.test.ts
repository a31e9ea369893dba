import { expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { assembled, exchange } from '../../kit/llm-exchange.ts';

test('20,000 candidates of a guarded Gemini stream do not block the gateway', async () => {
  const guardrails = { response: [{ regex: { action: 'mask', rules: [{ builtin: 'email' }] } }] };
  await using llm = await exchange({ model: { guardrails } });
  const parts = [{ text: 'a' }, { functionCall: { name: 'f', args: {} } }];
  const events = [
    ...Array.from({ length: 20_000 }, (_, index) => ({ candidates: [{ index, content: { parts } }] })),
    { candidates: [{ finishReason: 'STOP' }] },
  ];
  const since = performance.now();
  const { status, text } = await llm.call('generateContent', { events });
  expect([status, assembled('generateContent', text).hasEnded]).toEqual([200, true]);
  expect(performance.now() - since).toBeLessThan(2 * AT_ONCE);
});
