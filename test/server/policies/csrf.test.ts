import { afterAll, describe, expect, test } from 'vitest';
import { compilePolicies, type PolicyReply } from '../../kit/policy.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';

const POLICY = { csrf: { additionalOrigins: ['https://app.example.com'] } };

const policies = compilePolicies(POLICY);
afterAll(() => policies[Symbol.asyncDispose]());

const post = (headers: Record<string, string>, method = 'POST'): Promise<PolicyReply> =>
  policies.handle({ method, headers: { host: 'api.example.com', ...headers } });

describe('csrf', () => {
  test.each([
    ['a client without browser headers', {}],
    ['a page of the same origin', { 'sec-fetch-site': 'same-origin', origin: 'https://api.example.com' }],
    ['a navigation by the user', { 'sec-fetch-site': 'none' }],
    ['an older browser on a page of the same host', { origin: 'https://api.example.com' }],
    ['a page of a listed origin', { 'sec-fetch-site': 'cross-site', origin: 'https://app.example.com' }],
  ])('csrf passes %s', async (_who, headers) => {
    expect((await post(headers)).status).toBe(200);
  });

  test.each([
    ['a page of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['a page of another site without an Origin header', { 'sec-fetch-site': 'cross-site' }],
    ['a page of a sibling host', { 'sec-fetch-site': 'same-site', origin: 'https://blog.example.com' }],
    ['an older browser on another page', { origin: 'https://evil.example' }],
    ['a sandboxed page', { origin: 'null' }],
    ['a page on another port of a listed host', { origin: 'https://app.example.com:8443' }],
    ['a page on another port of the same host', { origin: 'https://api.example.com:8443' }],
    [
      'a page of a host that begins with that of the request',
      { origin: 'https://api.example.com.evil.example' },
    ],
    ['a page of a host that ends with that of the request', { origin: 'https://evil-api.example.com' }],
    ['a page of a host that begins with a listed host', { origin: 'https://app.example.com.evil.example' }],
  ])('csrf rejects %s', async (_who, headers) => {
    expect(await post(headers)).toMatchObject({ status: 403, text: 'CSRF validation failed' });
  });

  test('csrf ignores requests with safe methods', async () => {
    expect(
      (await post({ 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, 'GET')).status,
    ).toBe(200);
  });

  test('csrf.additionalOrigins rejects a value that is not an origin', () => {
    expect(() => compilePolicies({ csrf: { additionalOrigins: ['app.example.com'] } })).toThrow(
      'expected an origin',
    );
  });

  test('csrf rejects a cross-site POST to a running gateway', async () => {
    await using gate = await answeringGateway(POLICY);
    const headers = { host: 'api.example.com', 'sec-fetch-site': 'cross-site' };
    expect(await send(gate.url, { method: 'POST', headers })).toMatchObject({
      status: 403,
      text: 'CSRF validation failed',
    });
  });
});
