import { afterEach, expect, test, vi } from 'vitest';
import { DocumentClient } from '../../../../src/server/transport/upstream/document-client.ts';
import { startIdp } from '../../../kit/idp.ts';
import { call, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { type SigningKey, signingKey, token } from '../../../kit/tokens.ts';
import { until } from '../../../kit/until.ts';
import { httpUpstream } from '../../../kit/upstream.ts';

afterEach(() => vi.restoreAllMocks());

/** Moves the clock that measures the age of keys. */
function movableClock(): { advance(seconds: number): void } {
  let offset = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + offset);
  return {
    advance(seconds) {
      offset += seconds * 1000;
    },
  };
}

test('key rotation under load rejects no valid token and rejects tokens of a removed key', async () => {
  const clock = movableClock();
  await using idp = await startIdp();
  await using guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
  const keys = [idp.key, signingKey('main-2'), signingKey('main-3')] as const;
  /** The keys that the provider publishes; clients have tokens of old and new ones. */
  let valid: readonly SigningKey[] = [keys[0]];
  const refused: string[] = [];
  let answered = 0;
  let serial = 0;
  let running = true;
  const remembered = new Map<SigningKey, string>();
  const client = async (): Promise<void> => {
    while (running) {
      serial += 1;
      const key = valid[serial % valid.length] as SigningKey;
      const fresh = token(key, idp.claims({ jti: serial }));
      const text = serial % 3 === 0 ? (remembered.get(key) ?? fresh) : fresh;
      remembered.set(key, text);
      const reply = await call(guarded, text);
      answered += 1;
      if (reply.status !== 200) refused.push(`${key.kid}: ${reply.status} ${reply.text}`);
    }
  };
  const clients = Array.from({ length: 8 }, client);
  const some = (): Promise<void> => {
    const goal = answered + 100;
    return until(() => answered >= goal);
  };
  await some();
  // A provider publishes a new key next to the old one and signs with it from then on.
  idp.published = [keys[0].jwk, keys[1].jwk];
  valid = [keys[0], keys[1]];
  await some();
  expect(idp.hits('certs')).toBe(2);
  // Tokens of the old key have expired; it is removed, and the next key follows.
  clock.advance(31);
  valid = [keys[1]];
  await some();
  const leftOver = remembered.get(keys[0]) as string;
  expect((await call(guarded, leftOver)).status).toBe(200);
  idp.published = [keys[1].jwk, keys[2].jwk];
  valid = [keys[1], keys[2]];
  await some();
  const removed = await call(guarded, leftOver);
  running = false;
  await Promise.all(clients);
  expect(refused).toEqual([]);
  expect(removed.status).toBe(401);
  expect(JSON.parse(removed.text).error_description).toBe('the token is signed with an unknown key');
  expect(idp.hits('certs')).toBe(3);
});

test('a key removed without a replacement is rejected once the key set has expired', async () => {
  const clock = movableClock();
  await using idp = await startIdp();
  idp.answers.set('certs', (_, response) => {
    response.setHeader('cache-control', 'public, max-age=120');
    response.end(JSON.stringify({ keys: idp.published }));
  });
  await using guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
  const text = idp.token();
  expect((await call(guarded, text)).status).toBe(200);
  idp.published = [];
  clock.advance(119);
  expect((await call(guarded, text)).status).toBe(200);
  expect(idp.hits('certs')).toBe(1);
  clock.advance(2);
  await until(async () => (await call(guarded, text)).status === 401);
  // Once for the expired set, and once because the key is unknown now.
  expect(idp.hits('certs')).toBe(3);
});

test.each([
  ['', 900],
  ['no-store', 900],
  ['max-age=0', 60],
  ['x-max-age=7, s-maxage=7', 900],
  ['max-age=1', 60],
  ['public, max-age=600, must-revalidate', 600],
  ['public,Max-Age=600', 600],
  ['max-age=999999999', 86_400],
])('a document with Cache-Control %o is fresh for %i seconds', async (header, lifetime) => {
  await using server = await httpUpstream((_, response) => {
    response.setHeader('cache-control', header);
    response.end('{}');
  });
  const client = new DocumentClient();
  const document = await client.fetch(`http://${server.address}/keys`, 100);
  await client.close();
  expect(document).toEqual({ value: {}, lifetime: lifetime * 1000 });
});

test('a provider that was down is retried after 5 seconds', async () => {
  const clock = movableClock();
  await using idp = await startIdp();
  idp.answers.set('certs', (_, response) => response.writeHead(503).end());
  await using guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
  const text = idp.token();
  expect((await call(guarded, text)).status).toBe(503);
  idp.answers.delete('certs');
  expect((await call(guarded, text)).status).toBe(503);
  expect(idp.hits('certs')).toBe(1);
  clock.advance(5);
  expect((await call(guarded, text)).status).toBe(200);
});

test('cached provider metadata is served while the provider is down', async () => {
  const clock = movableClock();
  await using idp = await startIdp();
  await using guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
  const read = () => call(guarded, undefined, { target: '/.well-known/oauth-authorization-server' });
  const first = await read();
  idp.answers.set('openid-configuration', (_, response) => response.writeHead(503).end());
  clock.advance(299);
  await read();
  expect(idp.hits('openid-configuration')).toBe(1);
  clock.advance(2);
  expect((await read()).text).toBe(first.text);
  clock.advance(20);
  expect((await read()).text).toBe(first.text);
  expect(idp.hits('openid-configuration')).toBe(2);
  idp.answers.delete('openid-configuration');
  idp.metadata = { token_endpoint: `${idp.issuer}/other` };
  clock.advance(10);
  expect(JSON.parse((await read()).text).token_endpoint).toBe(`${idp.issuer}/other`);
});

test('provider metadata that has never been read is retried after 5 seconds', async () => {
  const clock = movableClock();
  await using idp = await startIdp();
  idp.answers.set('openid-configuration', (_, response) => response.writeHead(503).end());
  await using guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
  const status = async () =>
    (await call(guarded, undefined, { target: '/.well-known/oauth-authorization-server' })).status;
  expect([await status(), await status()]).toEqual([502, 502]);
  expect(idp.hits('openid-configuration')).toBe(1);
  idp.answers.delete('openid-configuration');
  clock.advance(5);
  expect(await status()).toBe(200);
});
