import { expect } from 'vitest';
import { browserTest } from '../../kit/browser.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { actors, basic, linkIn, protectedServer, signInGateway, USERS } from '../../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };

browserTest(
  'a real browser signs a user in at a server, and a form of another site cannot',
  async (chromium) => {
    await using folder = await temporaryFolder();
    await using provider = await startOidcProvider();
    await using server = await protectedServer(provider.issuer);
    await using gate = await signInGateway(folder.path, { github: server });
    const session = await gate.session(basic('ann'));
    const { url } = linkIn(await session.request('tools/call', SAY));
    await using evil = await httpUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(`<form method="post" action="${url}"><button>a prize</button></form>`);
    });
    const httpCredentials = { username: 'ann', password: USERS.ann };
    const context = await chromium.newContext({ httpCredentials });
    const page = await context.newPage();
    // Another site: for browsers, `localhost` and `127.0.0.1` are two.
    await page.goto(`http://${evil.address.replace('127.0.0.1', 'localhost')}/`);
    await page.click('button');
    expect(await page.textContent('body')).toContain('Open the link of your client, and confirm there.');
    expect((await session.request('tools/call', SAY)).result.isError).toBe(true);

    await page.goto(url);
    expect(await page.title()).toMatch(/^Sign in at 127\.0\.0\.1:\d+$/);
    await page.click('button');
    await page.waitForURL(/\/sign-in\/callback\/[\w-]+\?/);
    expect(await page.title()).toBe('You are signed in');
    expect((await session.request('tools/call', SAY)).result.isError).toBeUndefined();
    expect(actors(server)).toEqual(['alice']);
    await context.close();
  },
);
