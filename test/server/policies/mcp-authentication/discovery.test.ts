import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { type Idp, startIdp } from '../../../kit/idp.ts';
import { sendRaw } from '../../../kit/raw-http.ts';
import type { HttpReply } from '../../../kit/send.ts';
import { send } from '../../../kit/send.ts';
import { BASE_URL, call, protectedGateway, signIn } from '../../../kit/sign-in.ts';

const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';

const get = (gateway: TestGateway, path: string, headers = {}): Promise<HttpReply> =>
  send(gateway.url, { target: path, headers });

let idp: Idp;
let guarded: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
});
afterAll(() => Promise.all([guarded.close(), idp.upstream.close()]));

/** The resource metadata that a new gateway serves, and its configured issuer. */
async function resourceOf(more: object): Promise<{ issuer: string; resource: Record<string, unknown> }> {
  await using own = await startIdp();
  await using front = await protectedGateway([{ policies: signIn(own.issuer, more) }]);
  return { issuer: own.issuer, resource: JSON.parse((await get(front, RESOURCE)).text) };
}

describe('protected resource metadata', () => {
  test.each([RESOURCE, `${RESOURCE}/mcp`])(
    'protected resource metadata has the six specified members at %s',
    async (path) => {
      const reply = await get(guarded, path);
      expect(reply.status).toBe(200);
      expect(reply.headers['content-type']).toBe('application/json');
      expect(JSON.parse(reply.text)).toEqual({
        resource: `${BASE_URL}/mcp`,
        authorization_servers: [`${BASE_URL}/mcp`],
        mcp_protocol_version: '2025-06-18',
        resource_type: 'mcp-server',
        bearer_methods_supported: ['header'],
        scopes_supported: ['read', 'write'],
      });
    },
  );

  test('protected resource metadata names the provider with authorizationServer: issuer or without a provider kind', async () => {
    const sent = await resourceOf({ authorizationServer: 'issuer' });
    expect(sent.resource['authorization_servers']).toEqual([sent.issuer]);
    for (const authorizationServer of [undefined, 'issuer', 'gateway']) {
      const standard = await resourceOf({ provider: undefined, authorizationServer });
      expect(standard.resource['authorization_servers']).toEqual([standard.issuer]);
    }
  });

  test('protected resource metadata includes further configured members in snake case', async () => {
    const resourceMetadata = {
      resource: `${BASE_URL}/mcp`,
      resourceName: 'Tools',
      customMember: { keptAsIs: 1 },
    };
    const { resource } = await resourceOf({ resourceMetadata });
    expect(resource).toMatchObject({ resource_name: 'Tools', custom_member: { keptAsIs: 1 } });
  });

  test.each<Record<string, string>>([
    { host: 'evil.example' },
    { host: 'localhost', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
    { host: 'localhost', forwarded: 'host=evil.example' },
  ])('protected resource metadata does not depend on host headers: %o', async (headers) => {
    for (const path of [RESOURCE, SERVER]) {
      const reply = await get(guarded, path, headers);
      expect(reply.text).toBe((await get(guarded, path)).text);
      expect(reply.text).not.toContain('evil');
    }
    const challenge = (await call(guarded, undefined, { headers })).headers['www-authenticate'];
    expect(challenge).toBe(`Bearer resource_metadata="${BASE_URL}${RESOURCE}/mcp"`);
  });

  // microsoft/vscode#259251: clients compare `resource` with the URL that their user has entered.
  test.each([
    ['/mcp/', '/mcp/', '/mcp'],
    ['/', '', ''],
    ['', '', ''],
    ['/mcp/?tenant=a%2Fb', '/mcp/?tenant=a%2Fb', '/mcp'],
    ['/mcp?tenant=1', '/mcp?tenant=1', '/mcp'],
  ])('protected resource metadata has the resource as it is written: %s', async (written, behind, server) => {
    const resource = `${BASE_URL}${written}`;
    await using front = await protectedGateway([
      { policies: signIn(idp.issuer, { resourceMetadata: { resource } }) },
    ]);
    const challenge = (await call(front)).headers['www-authenticate'];
    expect(challenge).toBe(`Bearer resource_metadata="${BASE_URL}${RESOURCE}${behind}"`);
    const ends = written.split('?')[0]?.endsWith('/') === true ? ['', '/'] : [''];
    for (const path of new Set(['', server].flatMap((form) => ends.map((end) => form + end))))
      for (const query of ['', '?tenant=1']) {
        const reply = await get(front, RESOURCE + path + query);
        expect([path, reply.status]).toEqual([path, 200]);
        expect(JSON.parse(reply.text)).toMatchObject({
          resource,
          authorization_servers: [BASE_URL + server],
        });
        const { issuer } = JSON.parse((await get(front, SERVER + path + query)).text);
        expect(issuer).toBe(BASE_URL + (path.startsWith('/mcp') ? server : ''));
      }
  });

  test.each([RESOURCE, `${RESOURCE}/mcp`, SERVER, `${SERVER}/mcp`])(
    'a discovery document answers HEAD with the headers of GET and without its body: %s',
    async (path) => {
      const read = await get(guarded, path);
      const { text } = await sendRaw(
        guarded.port,
        `HEAD ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      );
      expect(text).toMatch(/^HTTP\/1\.1 200 /);
      expect(text.toLowerCase()).toContain('content-type: application/json\r\n');
      expect(text.toLowerCase()).toContain(`content-length: ${Buffer.byteLength(read.text)}\r\n`);
      expect(text.split('\r\n\r\n')[1]).toBe('');
    },
  );

  test('protected resource metadata is derived from the request without a configured resource and is served at the URL of the challenge', async () => {
    await using own = await startIdp();
    await using front = await protectedGateway([{ policies: signIn(own.issuer, { resourceMetadata: {} }) }]);
    const challenge = (await call(front)).headers['www-authenticate'] ?? '';
    const [, url = ''] = /resource_metadata="([^"]*)"/.exec(challenge) ?? [];
    expect(url).toBe(`${front.url}${RESOURCE}`);
    expect(JSON.parse((await send(url)).text)).toMatchObject({
      resource: front.url,
      authorization_servers: [front.url],
    });
    expect(JSON.parse((await get(front, SERVER)).text)).toMatchObject({
      issuer: front.url,
      registration_endpoint: `${front.url}${SERVER}/client-registration`,
    });
  });

  test('protected resource metadata is served safely for an invalid Host header', async () => {
    await using own = await startIdp();
    await using front = await protectedGateway([{ policies: signIn(own.issuer, { resourceMetadata: {} }) }]);
    for (const host of ['a"b', '[', 'a b']) {
      const request = `GET /mcp HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      const { text } = await sendRaw(front.port, request);
      expect(text).toMatch(/^HTTP\/1\.1 40[01] /);
      if (text.startsWith('HTTP/1.1 401'))
        expect(text).toContain(`resource_metadata="http://localhost${RESOURCE}"`);
    }
  });
});

describe('mcpAuthentication documents', () => {
  const documents = [
    [RESOURCE, 'GET'],
    [`${RESOURCE}/mcp`, 'GET'],
    [SERVER, 'GET'],
    [`${SERVER}/mcp`, 'GET'],
    [`${SERVER}/client-registration`, 'POST'],
    [`${SERVER}/mcp/client-registration`, 'POST'],
  ] as const;

  test.each(documents)(
    'discovery endpoint answers a preflight and is readable from any origin: %s',
    async (path, method) => {
      const headers = { origin: 'https://page.example', 'access-control-request-method': method };
      const preflight = await send(guarded.url, { target: path, method: 'OPTIONS', headers });
      const used = await send(guarded.url, {
        target: path,
        method,
        headers: { origin: 'https://page.example' },
        ...(method === 'POST' ? { body: '{}' } : {}),
      });
      expect(preflight.status).toBe(204);
      expect(used.status).toBeLessThan(300);
      for (const reply of [preflight, used])
        expect(reply.headers).toMatchObject({
          'access-control-allow-origin': '*',
          'access-control-allow-methods': `${method}, OPTIONS`,
          'access-control-allow-headers': 'content-type, mcp-protocol-version',
        });
    },
  );

  test.each(documents)(
    'discovery endpoint answers 405 with Allow for other methods: %s',
    async (path, method) => {
      for (const other of ['PUT', 'DELETE', method === 'GET' ? 'POST' : 'GET']) {
        const reply = await send(guarded.url, { target: path, method: other });
        expect(reply.status).toBe(405);
        expect(reply.headers.allow).toBe(method === 'GET' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS');
        expect(reply.headers['access-control-allow-origin']).toBe('*');
      }
    },
  );

  test('discovery endpoints send one Access-Control-Allow-Origin header under a cors policy', async () => {
    const cors = { allowOrigins: ['https://page.example'], exposeHeaders: ['Mcp-Session-Id'] };
    await using front = await protectedGateway([{ policies: { ...signIn(idp.issuer), cors } }]);
    const { rawHeaders } = await get(front, RESOURCE, { origin: 'https://page.example' });
    const origins = rawHeaders.filter((name) => name.toLowerCase() === 'access-control-allow-origin');
    expect(origins).toHaveLength(1);
  });

  test.each([
    `${RESOURCE}/../../mcp`,
    `${SERVER}/client-registration/../token`,
    `${SERVER}/client-registration/token`,
    `${SERVER};x/client-registration`,
    `/x${SERVER}`,
    `${SERVER}/other`,
    `${RESOURCE}/mcp/`,
  ])('discovery endpoints are not served at %s', async (path) => {
    const before = idp.upstream.received.length;
    expect([400, 404]).toContain((await get(guarded, path)).status);
    expect(idp.upstream.received).toHaveLength(before);
  });

  test('discovery endpoints distinguish two resources with two providers by path', async () => {
    await using first = await startIdp({ realm: 'first' });
    await using second = await startIdp({ realm: 'second' });
    const at = (path: string) => ({ resourceMetadata: { resource: `${BASE_URL}${path}` } });
    await using front = await protectedGateway([
      { name: 'one', path: '/one', policies: signIn(first.issuer, at('/one')) },
      { name: 'two', path: '/two', policies: signIn(second.issuer, at('/two')) },
    ]);
    for (const [path, provider] of [
      ['/one', first],
      ['/two', second],
    ] as const) {
      const challenge = (await get(front, path)).headers['www-authenticate'];
      expect(challenge).toContain(`${RESOURCE}${path}"`);
      const { authorization_servers: servers } = JSON.parse((await get(front, `${RESOURCE}${path}`)).text);
      expect(servers).toEqual([`${BASE_URL}${path}`]);
      const metadata = JSON.parse((await get(front, `${SERVER}${path}`)).text);
      expect(metadata).toMatchObject({
        issuer: servers[0],
        token_endpoint: `${provider.issuer}/protocol/openid-connect/token`,
      });
      const target = new URL(metadata.registration_endpoint).pathname;
      await send(front.url, { target, method: 'POST', body: '{}' });
      expect(provider.hits('registration')).toBe(1);
    }
  });
});
