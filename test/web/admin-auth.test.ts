import { afterAll, beforeAll, expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { chaos } from '../kit/config.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { AUDIENCE, type Idp, startIdp } from '../kit/idp.ts';
import { seconds } from '../kit/tokens.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-auth.test.ts');

let idp: Idp;
let running: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  const mcpAuthentication = {
    issuer: idp.issuer,
    audiences: [AUDIENCE],
    resourceMetadata: { resource: 'http://localhost/mcp' },
    provider: { idpx: {} },
  };
  const backends = [{ mcp: { targets: [chaos('files')] } }];
  const at = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];
  const routes = [
    { name: 'anyone', matches: at('/mcp'), policies: { mcpAuthentication }, backends },
    {
      name: 'bob',
      matches: at('/bob'),
      policies: { mcpAuthentication, authorization: { rules: ['jwt.sub == "bob"'] } },
      backends,
    },
  ];
  const config = {
    config: { adminAddr: 'off' },
    gateways: { edge: { port: 0, routes } },
    llm: { port: 0, models: [{ name: '*', provider: 'echo' }] },
  };
  running = await gateway(JSON.stringify(config), { admin: true, webApp: ADMIN_PAGES });
});
afterAll(async () => {
  await running.close();
  await idp[Symbol.asyncDispose]();
});

browserTest('the auth page decodes a token and shows whether each route accepts it', async (browser) => {
  const { page, problems, elsewhere } = await watchedPage(browser, running.admin);
  await page.goto(`${running.admin}/ui/auth`);
  const route = (name: string) => page.getByRole('listitem').filter({ hasText: name });
  await page.getByRole('button', { name: 'Try without a token' }).click();
  await route('(anyone)').getByText('✗ rejected 401').waitFor();
  await route('(llm)').getByText('✓ accepted').waitFor();

  await page.getByLabel('Bearer token').fill(idp.token());
  await page.getByRole('row', { name: /^sub/ }).getByText('alice').waitFor();
  await page.getByRole('button', { name: 'Try it' }).click();
  await route('(anyone)').getByText('✓ accepted').waitFor();
  await route('(bob)').getByText('✗ rejected 403').waitFor();
  await route('(bob)').getByText('Trace of this request').click();
  await route('(bob)').getByText('jwt.sub == "bob"').first().waitFor();
  await expectAccessible(page);

  await page.getByLabel('Bearer token').fill(idp.token({ exp: seconds(-7_300) }));
  await page.getByText('! it expired 2 h ago (exp)').waitFor();
  // Nothing of the other token is still shown.
  expect(await page.getByText('✓ accepted').count()).toBe(0);
  await page.getByRole('button', { name: 'Try it' }).click();
  await route('(anyone)')
    .getByText(/✗ rejected 401: .*expired/)
    .waitFor();
  expect({ problems, elsewhere }).toEqual({ problems: [], elsewhere: [] });
});

browserTest(
  'the auth page reports text that is not a JWT, shows hostile claims as text and fits a phone screen',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, running.admin, {
      viewport: { width: 390, height: 780 },
    });
    await page.goto(`${running.admin}/ui/auth`);
    await page.getByLabel('Bearer token').fill('not.a.token');
    await page.getByText('This is not a JWT').waitFor();
    await page.getByLabel('Bearer token').fill(idp.token({ name: '<img src=x>\u202e', exp: undefined }));
    await page.getByText('<img src=x>⟨U+202E⟩').waitFor();
    await page.getByText('it never expires').waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(problems).toEqual([]);
  },
);
