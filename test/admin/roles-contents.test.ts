import { expect, test } from 'vitest';
import type { AuditView } from '../../src/core/audit-view.ts';
import { gateway } from '../kit/gateway.ts';
import { AUDIENCE, startIdp } from '../kit/idp.ts';
import { freePort } from '../kit/ports.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { recordingGateway } from '../server/record/recorded.ts';

const as = (group: string): Record<string, string> => ({
  'x-forwarded-user': 'ann',
  'x-forwarded-groups': group,
});

test('a viewer finds records of requests, but neither what was said in them nor whether a word was', async () => {
  await using recording = await recordingGateway({
    record: { payloads: 'full', add: { said: 'request.path + "-CANARY"' } },
    config: { adminRoles: { viewer: ['v'], operator: ['o'], proxy: { addresses: ['127.0.0.1'] } } },
    more: {
      gateways: { default: { port: 0 } },
      llm: { gateways: 'default', models: [{ name: 'm', provider: 'echo' }] },
    },
  });
  const { gate } = recording;
  await send(`${gate.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'CANARY in a prompt' }] }),
  });
  const get = (path: string, group: string) => send(`${gate.admin}${path}`, { headers: as(group) });
  await until(async () => (await get('/api/records', 'v')).text.includes('"id"'));
  for (const path of [
    '/api/records',
    '/api/records/1',
    '/api/records?model=m',
    '/api/usage',
    '/api/requests',
  ]) {
    const seen = await get(path, 'v');
    expect([path, seen.status, seen.text.includes('CANARY')]).toEqual([path, 200, false]);
  }
  for (const query of ['?text=CANARY', '?contents=true', '?text=nothing&contents=true']) {
    const { status, text } = await get(`/api/records${query}`, 'v');
    expect([query, status]).toEqual([query, 403]);
    expect(text).toContain('needs the role `operator`');
  }
  expect((await get('/api/records/1', 'o')).text).toContain('CANARY in a prompt');
  expect((await get('/api/records?text=CANARY&contents=true', 'o')).text).toContain('CANARY');
});

test('a claim of a token gives the role, and events name its subject and issuer', async () => {
  await using idp = await startIdp();
  const adminPort = await freePort();
  await using gate = await gateway(
    JSON.stringify({
      config: {
        adminAddr: `127.0.0.1:${adminPort}`,
        adminRoles: { claim: 'jwt.groups', viewer: ['staff'], operator: ['oncall'] },
      },
      gateways: { default: { port: 0 } },
      ui: {
        policies: {
          jwtAuth: {
            mode: 'strict',
            issuer: idp.issuer,
            audiences: [AUDIENCE],
            jwks: { url: `${idp.issuer}/protocol/openid-connect/certs` },
          },
        },
      },
    }),
    { admin: true, adminPort },
  );
  const level = async (sub: string, claims: object): Promise<{ status: number; text: string }> =>
    send(`${gate.url}/logging?level=debug`, {
      method: 'POST',
      headers: { authorization: `Bearer ${idp.token({ sub, ...claims })}` },
    });
  expect((await level('ann', { groups: ['staff', 'oncall'] })).status).toBe(200);
  expect((await level('bob', { groups: 'staff' })).text).toMatch(
    /needs the role `operator`, and "bob" has the role `viewer`/,
  );
  // Of many groups, some providers send a link in place of the claim.
  const overage = await level('eve', { _claim_names: { groups: 'src1' } });
  expect(overage.status).toBe(403);
  expect(overage.text).toMatch(/"eve" has no role: `jwt\.groups`.*groups/);
  const reply = await send(`${gate.url}/api/audit`, {
    headers: { authorization: `Bearer ${idp.token({ sub: 'ann', groups: ['oncall'] })}` },
  });
  const { events } = JSON.parse(reply.text) as AuditView;
  const issuer = idp.issuer;
  expect(events.map(({ actor, outcome }) => [actor, outcome])).toEqual([
    [{ kind: 'subject', name: 'eve', issuer, role: 'none' }, 'refused'],
    [{ kind: 'subject', name: 'bob', issuer, role: 'viewer' }, 'refused'],
    [{ kind: 'subject', name: 'ann', issuer, role: 'operator' }, 'done'],
  ]);
});

test('an event of a request that a gateway forwards does not name the user of the gateway itself', async () => {
  const adminPort = await freePort();
  await using gate = await gateway(
    JSON.stringify({
      config: { adminAddr: `127.0.0.1:${adminPort}` },
      gateways: { default: { port: 0, address: '127.0.0.1' } },
      ui: {},
    }),
    { admin: true, adminPort },
  );
  const leave = new AbortController();
  expect((await fetch(`${gate.url}/debug/trace`, { signal: leave.signal })).status).toBe(200);
  leave.abort();
  const { text } = await send(`${gate.admin}/api/audit`);
  expect((JSON.parse(text) as AuditView).events).toMatchObject([
    { action: 'trace.arm', actor: { kind: 'local' }, from: { address: '127.0.0.1' } },
  ]);
  expect(text).not.toContain('"name"');
});
