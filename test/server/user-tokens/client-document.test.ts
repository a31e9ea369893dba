import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { scripted } from '../../kit/oidc-site.ts';
import { send } from '../../kit/send.ts';
import {
  actors,
  basic,
  linkIn,
  protectedServer,
  signInGateway,
  UserBrowser,
} from '../../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };
const ORIGIN = 'https://tools.example.com';

test('behind a proxy with TLS, the gateway is known by its own document, and cookies belong to the host', async () => {
  await using folder = await temporaryFolder();
  await using provider = await scripted();
  provider.metadata = {
    code_challenge_methods_supported: ['S256'],
    client_id_metadata_document_supported: true,
  };
  const claims = Buffer.from(JSON.stringify({ sub: 'alice', exp: 4_000_000_000 })).toString('base64url');
  provider.issued = { access_token: `h.${claims}.s` };
  await using server = await protectedServer(provider.issuer);
  await using gate = await signInGateway(
    folder.path,
    { github: server },
    { signIn: { url: `${ORIGIN}/sign-in` } },
  );
  const session = await gate.session(basic('ann'));
  const { text } = await session.request('tools/call', SAY);
  expect(text).toContain(`${ORIGIN}/sign-in?link_token=`);
  const own = (url: string): string => url.replace(ORIGIN, gate.url);
  const { url } = linkIn({ text: own(text) });
  const browser = new UserBrowser(basic('ann'));
  const confirmed = await browser.open(url, {}, { origin: ORIGIN });
  expect(confirmed.headers['set-cookie']?.[0]).toMatch(
    /^__Host-agctl_sign_in_[\w-]+=.*; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  const authorize = new URL(String(confirmed.headers['location']));
  const document = authorize.searchParams.get('client_id') ?? '';
  const [, id] = /^https:\/\/tools\.example\.com\/sign-in\/client\/([\w-]{22})\.json$/.exec(document) ?? [];

  // Without a credential, as authorization servers fetch it.
  const fetched = await send(own(document));
  expect(JSON.parse(fetched.text)).toMatchObject({
    client_id: document,
    redirect_uris: [`${ORIGIN}/sign-in/callback/${id}`],
    token_endpoint_auth_method: 'none',
  });
  for (const path of ['', '/client/x.json', `/client/${id}`, '/client/.json', `/callback/${id}`])
    expect([path, (await send(own(`${ORIGIN}/sign-in${path}`))).status]).toEqual([path, 401]);

  const { location } = (await send(authorize.href)).headers;
  expect((await browser.open(own(String(location)))).text).toContain('You are signed in');
  await session.request('tools/call', SAY);
  expect(actors(server)).toEqual(['alice']);
  const [form] = provider.forms('/token', 'authorization_code');
  expect([form?.get('client_id'), form?.get('client_secret')]).toEqual([document, null]);
});
