// The admin UI: its list of requests with the maximum number that a page keeps.
import { adminUi } from '../../test/kit/admin-ui.ts';

const REQUESTS = 50_000;

export const admin = {
  async open() {
    const ui = await adminUi();
    await ui.traffic();
    return {
      url: ui.gate.admin,
      start: { path: '/ui/', shows: '/nowhere' },
      close: () => ui[Symbol.asyncDispose](),
      more: async (browser) => [await longList(browser, ui.url)],
    };
  },
};

async function longList(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.route('**/api/requests', (route) =>
    route.fulfill({ contentType: 'text/event-stream', body: requests() }),
  );
  const all = await time(
    () => page.goto(`${url}/requests`),
    () => page.getByText('50,000 of 50,000 requests').waitFor(),
  );
  await page.keyboard.press('j');
  const end = await time(
    () => page.keyboard.press('End'),
    () => page.getByRole('row', { name: /\/file\/1$/ }).waitFor(),
  );
  const filter = page.getByLabel('Text in any field');
  const first = await time(
    () => filter.fill('/file/4242'),
    () => page.getByText('11 of 50,000 requests').waitFor(),
  );
  const next = await time(
    () => filter.fill('/file/4243'),
    () => page.getByText('11 of 50,000 requests').waitFor(),
  );
  await context.close();
  return `${REQUESTS.toLocaleString('en')} requests: on the page after ${all} ms; to the last one ${end} ms; first filter ${first} ms, the next ${next} ms`;
}

async function time(act, seen) {
  const startedAt = performance.now();
  await act();
  await seen();
  return Math.round(performance.now() - startedAt);
}

function requests() {
  const time = new Date().toISOString();
  return Array.from({ length: REQUESTS }, (_none, index) => {
    const fields = {
      'http.method': 'GET',
      'http.path': `/file/${index + 1}`,
      'http.status': 200,
      duration: '1ms',
    };
    return `event: request\ndata: ${JSON.stringify({ id: index + 1, time, fields })}\n\n`;
  }).join('');
}
