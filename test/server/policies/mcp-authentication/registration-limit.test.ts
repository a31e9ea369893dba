import { describe, expect, test } from 'vitest';
import { startIdp } from '../../../kit/idp.ts';
import { type HttpReply, send } from '../../../kit/send.ts';
import { protectedGateway, signIn } from '../../../kit/sign-in.ts';

// A slow machine must not refill the bucket during a test, nor should a test need hundreds of requests.
const MOST = 5;
const ALL = 12;
const LIMITS = {
  limits: { registrationsPerAddress: MOST, registrations: ALL, registrationsInterval: 3_600_000 },
};

const SERVER = '/.well-known/oauth-authorization-server';
const CLIENT = JSON.stringify({ client_name: 'x', redirect_uris: ['http://127.0.0.1:1/callback'] });

function register(url: string, from = '127.0.0.1', path = ''): Promise<HttpReply> {
  return send(`${url}${SERVER}${path}/client-registration`, { method: 'POST', body: CLIENT, from });
}

async function statuses(url: string, times: number, from?: string): Promise<number[]> {
  const all = await Promise.all(Array.from({ length: times }, () => register(url, from)));
  return all.map(({ status }) => status).sort();
}

describe('client registration limits', () => {
  test.each([
    ['that the provider answers', {}],
    ['that the gateway answers', { clientId: 'mcp-client' }],
  ])('registrations %s are limited per address, with 429 and Retry-After on every path', async (_, more) => {
    const idp = await startIdp();
    await using _upstream = idp.upstream;
    await using gate = await protectedGateway([{ policies: signIn(idp.issuer, more) }], LIMITS);
    expect(await statuses(gate.url, MOST)).toEqual(Array(MOST).fill(201));
    const asked = idp.asked('registration').length;
    for (const path of ['', '/mcp']) {
      const refused = await register(gate.url, undefined, path);
      expect(refused.status).toBe(429);
      const wait = Number(refused.headers['retry-after']);
      expect(wait).toBeGreaterThan(600);
      expect(wait).toBeLessThanOrEqual(720);
      expect(refused.headers['access-control-allow-origin']).toBe('*');
    }
    expect(idp.asked('registration')).toHaveLength(asked);
    expect(await gate.accessLine(MOST + 1)).toMatchObject({ 'http.status': '429', reason: 'RateLimit' });
    // Another address and other requests are not limited.
    expect((await register(gate.url, '127.0.0.2')).status).toBe(201);
    expect((await send(gate.url + SERVER)).status).toBe(200);
  });

  test('registrations of the address that registered least recently are forgotten when there are too many addresses', async () => {
    await using gate = await protectedGateway(
      [{ policies: signIn('http://idp.example', { clientId: 'mcp-client' }) }],
      { limits: { ...LIMITS.limits, registrationsPerAddress: 1, registrationAddresses: 2 } },
    );
    const answered: number[] = [];
    for (const at of [2, 3, 2, 4, 2, 3]) answered.push((await register(gate.url, `127.0.0.${at}`)).status);
    expect(answered).toEqual([201, 201, 429, 201, 429, 201]);
  });

  test('registrations are limited for all addresses together', async () => {
    await using gate = await protectedGateway(
      [{ policies: signIn('http://idp.example', { clientId: 'mcp-client' }) }],
      LIMITS,
    );
    const answered: number[] = [];
    for (const from of ['127.0.0.2', '127.0.0.3', '127.0.0.4'])
      answered.push(...(await statuses(gate.url, MOST, from)));
    expect(answered.filter((status) => status === 201)).toHaveLength(ALL);
    expect(answered.filter((status) => status === 429)).toHaveLength(3 * MOST - ALL);
  });
});
