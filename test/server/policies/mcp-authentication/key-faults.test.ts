import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { json, startIdp } from '../../../kit/idp.ts';
import { call, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { type Answer, httpUpstream, refusingPort } from '../../../kit/upstream.ts';

/** The protected route answers 503, another one works, and the log has the reason. */
async function expectUndecided(guarded: TestGateway, bearer: string, detail: string): Promise<void> {
  const before = guarded.accessLog.length;
  const reply = await call(guarded, bearer);
  expect(reply.status).toBe(503);
  expect(reply.headers['retry-after']).toBe('5');
  expect(reply.headers['www-authenticate']).toBeUndefined();
  expect(reply.text).toBe(
    'tokens cannot be checked: the signing keys of the identity provider are not available',
  );
  const line = await guarded.accessLine(before + 1);
  expect(line).toMatchObject({ 'http.status': '503', reason: 'JwtAuth' });
  expect(line['error.detail']).toContain(detail);
  expect((await call(guarded, undefined, { target: '/open' })).text).toBe('reached');
}

const withOpenRoute = (policies: object) => [{ policies }, { name: 'open', path: '/open', policies: {} }];

describe('signing keys that cannot be fetched', () => {
  test('the gateway starts and serves other routes while the provider is down', async () => {
    const issuer = `http://127.0.0.1:${await refusingPort()}/realms/main`;
    await using guarded = await protectedGateway(withOpenRoute(signIn(issuer)));
    await using idp = await startIdp();
    await expectUndecided(guarded, idp.token({ iss: issuer }), 'could not be reached: connection refused');
  });

  const answers: readonly (readonly [name: string, answer: Answer, detail: string])[] = [
    ['fails', (_, response) => response.writeHead(500).end('oops'), 'answered 500'],
    ['requires HTTPS', httpsRequired, 'answered 403 (HTTPS required)'],
    ['answers with HTML', (_, response) => html(response), 'did not answer with JSON'],
    ['answers with a list', (_, response) => json(response, 200, []), 'the key set has no `keys` list'],
    ['answers with null', (_, response) => json(response, 200, null), 'the key set has no `keys` list'],
    [
      'has an object as keys',
      (_, response) => json(response, 200, { keys: {} }),
      'the key set has no `keys` list',
    ],
    [
      'has 101 keys',
      (_, response) => json(response, 200, { keys: Array(101).fill({}) }),
      'more than 100 keys',
    ],
    [
      'has 10,000 keys',
      (_, response) => json(response, 200, { keys: Array(10_000).fill({}) }),
      'more than 100 keys',
    ],
    [
      'sends 10 MB',
      (_, response) => json(response, 200, { keys: [], more: 'x'.repeat(10_000_000) }),
      'answered with more than 1048576 bytes',
    ],
    ['nests 500,000 lists', (_, response) => response.end('['.repeat(500_000)), 'did not answer with JSON'],
    ['answers with 204', (_, response) => response.writeHead(204).end(), 'answered 204'],
    ['answers with 999', (_, response) => response.writeHead(999).end(), 'answered with status 999'],
    ['sends an endless body', (_, response) => flood(response), 'answered with more than 1048576 bytes'],
    [
      'ends its response early',
      (_, response) => breakOff(response),
      'could not be reached: the connection was closed',
    ],
  ];

  test.each(answers)('tokens are undecided (503) while the provider %s', async (_, answer, detail) => {
    await using idp = await startIdp();
    idp.answers.set('certs', answer);
    await using guarded = await protectedGateway(withOpenRoute(signIn(idp.issuer)));
    await expectUndecided(guarded, idp.token(), detail);
  });

  test('a token that no key could have signed is rejected without a request to the failing provider', async () => {
    await using idp = await startIdp();
    idp.answers.set('certs', (_, response) => response.writeHead(500).end());
    await using guarded = await protectedGateway(withOpenRoute(signIn(idp.issuer)));
    for (const bad of [`${idp.token()}=`, idp.token().replace(/[^.]+$/, '')]) {
      const reply = await call(guarded, bad);
      expect([reply.status, JSON.parse(reply.text)]).toEqual([
        401,
        { error: 'invalid_token', error_description: 'the token signature is not valid base64url' },
      ]);
    }
    expect(idp.hits('certs')).toBe(0);
    await expectUndecided(guarded, idp.token(), 'answered 500');
  });

  test('a redirect of the key set endpoint is not followed', async () => {
    await using elsewhere = await httpUpstream();
    await using idp = await startIdp();
    idp.answers.set('certs', (_, response) =>
      response.writeHead(302, { location: `http://${elsewhere.address}/` }).end(),
    );
    await using guarded = await protectedGateway(withOpenRoute(signIn(idp.issuer)));
    await expectUndecided(guarded, idp.token(), 'answered 302');
    expect(elsewhere.received).toEqual([]);
  });

  test('a request waits at most 5 seconds for a slow key set endpoint', async () => {
    const verdictOf = async (answer: Answer): Promise<number> => {
      await using idp = await startIdp();
      idp.answers.set('certs', answer);
      await using guarded = await protectedGateway(withOpenRoute(signIn(idp.issuer)));
      const started = performance.now();
      await expectUndecided(guarded, idp.token(), 'did not answer in time');
      return performance.now() - started;
    };
    const drip: Answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(timer));
    };
    for (const waited of await Promise.all([verdictOf(() => undefined), verdictOf(drip)])) {
      expect(waited).toBeGreaterThan(4_900);
      expect(waited).toBeLessThan(15_000);
    }
  });
});

type Response = Parameters<Answer>[1];

function httpsRequired(_request: unknown, response: Response): void {
  json(response, 403, { error: 'invalid_request', error_description: 'HTTPS required' });
}

function html(response: Response): void {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Sign in</title>');
}

/** Up to 50 MB, as long as the reader takes them. */
function flood(response: Response): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  const chunk = Buffer.alloc(65_536, ' ');
  Readable.from(Array(763).fill(chunk)).pipe(response);
}

function breakOff(response: Response): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"keys":', () => response.destroy());
}
