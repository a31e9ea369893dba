import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { AUDIENCE } from '../../kit/idp.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { freePort } from '../../kit/ports.ts';
import { actors, linkIn, protectedServer, signInGateway, UserBrowser } from '../../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };

test('with an identity provider, the user of the browser has to be the one of the token', async () => {
  await using folder = await temporaryFolder();
  let person = 'mallory';
  await using idp = await startOidcProvider({ hasPasswords: true, account: () => person });
  await using provider = await startOidcProvider({ account: () => 'alice-at-the-server' });
  await using server = await protectedServer(provider.issuer);
  const { issuer } = idp;
  const port = await freePort();
  const redirectURI = `http://127.0.0.1:${port}/sign-in/oidc`;
  const registered = await fetch(`${issuer}/clients-registrations/openid-connect`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [redirectURI] }),
  });
  const { client_id: clientId, client_secret: clientSecret } = (await registered.json()) as Record<
    string,
    string
  >;
  const jwks = { url: `${issuer}/protocol/openid-connect/certs` };
  await using gate = await signInGateway(
    folder.path,
    { github: server },
    {
      port,
      policies: { mcpAuthentication: { issuer, audiences: [AUDIENCE], jwks } },
      pagePolicies: { oidc: { issuer, clientId, clientSecret, redirectURI } },
    },
  );
  const body = new URLSearchParams({
    grant_type: 'password',
    client_id: AUDIENCE,
    username: 'alice',
    password: 'any',
  });
  const answer = await fetch(`${issuer}/protocol/openid-connect/token`, { method: 'POST', body });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const session = await gate.session({ authorization: `Bearer ${token}` });
  const link = linkIn(await session.request('tools/call', SAY));
  const open = async (browser: UserBrowser) => browser.follow(await browser.open(link.url), link.url);

  const refused = await open(new UserBrowser());
  expect(refused.reply.text).toContain('belongs to another user');
  person = 'alice';
  const browser = new UserBrowser();
  const { url, reply } = await open(browser);
  expect(reply.text).toContain('Sign in at 127.0.0.1');
  const { reply: done } = await browser.follow(await browser.open(url, {}), url);
  expect(done.text).toContain('You are signed in');
  expect((await session.request('tools/call', SAY)).result.isError).toBeUndefined();
  expect(actors(server)).toEqual(['alice-at-the-server']);
});
