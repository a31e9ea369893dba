import { get } from 'node:http';
import { expect, test } from 'vitest';
import { serve } from '../../kit/process.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

const ROUTES = 60;
// One text under many names: the file stays below its limit, the dump does not.
const routes = Array.from({ length: ROUTES }, (_, index) => {
  const body = index === 0 ? `&b ${'x'.repeat(900_000)}` : '*b';
  return `      - matches: [{ path: { exact: /${index} } }]\n        policies: { directResponse: { body: ${body} } }\n`;
});
const CONFIG = `gateways:\n  a:\n    port: 0\n    routes:\n${routes.join('')}`;

test('a dump of 50 MB is sent in chunks while requests are answered', {
  timeout: 60_000,
}, async () => {
  await using running = await serve(CONFIG, { env: { ADMIN_ADDR: '127.0.0.1:0' } });
  const admin = /admin server +(http:\/\/127\.0\.0\.1:\d+)/.exec(running.stderr)?.[1] as string;
  let bytes = 0;
  let isDone = false;
  get(`${admin}/config_dump`, (response) => {
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    response.on('end', () => {
      isDone = true;
    });
  });
  let answeredBetween = 0;
  await until(async () => {
    const { status } = await send(`${running.url}/none`);
    expect(status).toBe(404);
    if (bytes > 0 && !isDone) answeredBetween += 1;
    return isDone;
  }, 30_000);
  expect(bytes).toBeGreaterThan(50_000_000);
  expect(answeredBetween).toBeGreaterThan(3);
});
