import { Agent } from 'node:http';
import { expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const LIMITS = { limits: { authorizationConnections: 8 } };

test('extAuthz limits connections to the service, and further calls wait for one', async () => {
  let isHolding = true;
  const held: (() => void)[] = [];
  await using service = await httpUpstream((_, response) => {
    if (isHolding) held.push(() => response.end('ok'));
    else response.end('ok');
  });
  await using gate = await answeringGateway(askPolicy(service.address), {}, LIMITS);
  const agent = new Agent({ keepAlive: true });
  const replies = Promise.all(Array.from({ length: 40 }, () => send(gate.url, { agent })));
  await until(() => held.length === 8);
  await until(() => gate.running.openRequests.size === 40);
  isHolding = false;
  for (const answer of held) answer();
  expect((await replies).map(({ status }) => status)).toEqual(Array(40).fill(200));
  expect(service.connections).toBe(8);
  agent.destroy();
});

test('extAuthz denies requests that wait too long for a connection to a silent service', async () => {
  let isSilent = true;
  await using service = await httpUpstream((_, response) => (isSilent ? undefined : response.end('ok')));
  await using gate = await answeringGateway(askPolicy(service.address), {}, LIMITS);
  const agent = new Agent({ keepAlive: true });
  const replies = await Promise.all(Array.from({ length: 40 }, () => send(gate.url, { agent })));
  expect(replies.map(({ status }) => status)).toEqual(Array(40).fill(403));
  expect((await gate.accessLine(40))['error.detail']).toContain('timed out');
  isSilent = false;
  expect((await send(gate.url, { agent })).status).toBe(200);
  agent.destroy();
});
