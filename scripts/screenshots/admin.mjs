// The admin UI, in front of a gateway with MCP servers, a model, and a rule that refuses.
import { adminUi } from '../../test/kit/admin-ui.ts';
import { history, prependRequests } from './history.mjs';

export const admin = {
  async open() {
    const ui = await adminUi();
    for (let round = 0; round < 2; round += 1) await ui.traffic();
    return {
      url: ui.gate.admin,
      prepareContext: (context) => context.addInitScript(prependRequests, history(Date.now())),
      close: () => ui[Symbol.asyncDispose](),
      pages: [
        {
          name: 'overview',
          path: '/ui/',
          prepare: (page) =>
            page
              .getByText('2 sessions')
              .waitFor()
              .then(() => page.getByText('/nowhere').first().waitFor()),
        },
        {
          name: 'health',
          path: '/ui/health',
          prepare: (page) => page.getByRole('row', { name: /^files/ }).waitFor(),
        },
        {
          name: 'requests',
          path: '/ui/requests',
          async prepare(page) {
            await page.locator('.virtual').getByText('read_file').first().waitFor();
            await page.keyboard.press('j');
          },
        },
        {
          name: 'request',
          path: '/ui/requests?text=completions',
          async prepare(page) {
            await page.locator('.virtual tbody tr').first().click();
            await page.getByRole('dialog', { name: /completions/ }).waitFor();
          },
        },
        { name: 'usage', path: '/ui/usage', prepare: (page) => page.getByText('By model').waitFor() },
        {
          name: 'trace',
          path: '/ui/trace',
          hasTwoPanes: true,
          async prepare(page) {
            await page.getByRole('button', { name: 'Trace the next request' }).click();
            await page.getByText('Waiting for a request.').first().waitFor();
            await ui.get('/private/b', { 'x-team': 'red' });
            await page.getByText('403, denied by authorization').waitFor();
            await page.getByRole('button', { name: /cel request.headers/ }).click();
            await page.evaluate(() => scrollTo(0, 0));
          },
        },
        {
          name: 'system',
          path: '/ui/system',
          prepare: (page) => page.getByText('in use').first().waitFor(),
        },
      ],
    };
  },
};
