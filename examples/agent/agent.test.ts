import { replayCassette, testGateway } from '@agctl/agctl/testing';
import { expect, test } from 'vitest';
import { answer } from './agent.ts';

// Recorded once with a model and the server (`npm run record`), and replayed without either.
const start = (cassette: string) =>
  process.env['RECORD'] === '1'
    ? testGateway('gateway.yaml', { record: cassette })
    : replayCassette(cassette);

test('the agent looks up an order', async () => {
  const gateway = await start('cassettes/order.jsonl');
  try {
    expect(await answer('When does my order A-17 arrive?', gateway.url)).toContain('Thursday');
  } finally {
    await gateway.close();
  }
});

test('the agent cannot cancel an order, and says so', async () => {
  const gateway = await start('cassettes/cancel.jsonl');
  try {
    expect(await answer('Cancel my order A-18.', gateway.url)).toMatch(/cannot|can't|unable/i);
  } finally {
    await gateway.close();
  }
});
