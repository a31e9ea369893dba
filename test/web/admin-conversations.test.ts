import { expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { chaos } from '../kit/config.ts';
import { answering, CHAT, chat, completion, llmProvider } from '../kit/llm-provider.ts';
import { openSession } from '../kit/mcp.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';
import { llmSection, recordingGateway } from '../server/record/recorded.ts';

const { browserTest } = sharedBrowser('test/web/admin-conversations.test.ts');

const HOSTILE = '<img src=x onerror="document.title=1">\u202e';

browserTest(
  'the Conversations page finds prompts, answers, tool calls and results, and shows them as text',
  async (browser) => {
    await using provider = await llmProvider(answering(completion('the secret of the sea')));
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: {
        ...llmSection(provider),
        gateways: {
          default: {
            port: 0,
            routes: [{ name: 'tools', backends: [{ mcp: { targets: [chaos('one', '--tools=echo')] } }] }],
          },
        },
      },
      options: { webApp: ADMIN_PAGES },
    });
    const { gate } = recording;
    const [mcp = 0, llm = 0] = gate.ports;
    const session = await openSession(`http://127.0.0.1:${mcp}/mcp`);
    await session.request('tools/call', { name: 'echo', arguments: { message: HOSTILE } });
    await chat(
      { url: `http://127.0.0.1:${llm}` },
      { ...CHAT, messages: [{ role: 'user', content: 'Where is it?' }] },
    );
    await recording.records('protocol=llm', 1);
    const { page, problems } = await watchedPage(browser, gate.admin);
    await page.goto(`${gate.admin}/ui/conversations`);
    const list = page.getByRole('region', { name: 'Requests' });
    const shown = page.getByRole('region', { name: 'Conversation' });
    await list.getByRole('button', { name: /chat acme-mini/ }).waitFor();
    // What opens a session or reads lists is about nothing.
    expect(await list.getByRole('listitem').count()).toBe(2);
    await list.getByText('Where is it?').waitFor();
    await list.getByText('{"message":"<img src=x').waitFor();
    await shown.getByText('Where is it?').waitFor();
    await shown.getByText('the secret of the sea').waitFor();
    await expectAccessible(page);
    await page.getByLabel('With').selectOption('mcp');
    await list.getByRole('button', { name: /tools\/call echo/ }).click();
    await shown.getByText('calls echo').waitFor();
    await shown.getByText('echo returns').waitFor();
    await shown.getByText('<img src=x').first().waitFor();
    expect(await page.locator('img').count()).toBe(0);
    await shown.getByRole('link', { name: 'Timeline of this session' }).click();
    await page.getByRole('row', { name: /tools\/call echo/ }).waitFor();
    await until(async () => (await page.getByRole('row').count()) > 2);
    await page.goto(`${gate.admin}/ui/conversations?text=sea`);
    await shown.getByText('the secret of the sea').waitFor();
    expect(await list.getByRole('listitem').count()).toBe(1);
    await page.getByLabel('Words that were said').fill('nowhere');
    await page.getByText('No recorded request matches.').waitFor();
    await page.setViewportSize({ width: 390, height: 780 });
    await page.getByLabel('Words that were said').fill('');
    await list.waitFor();
    await shown.waitFor({ state: 'hidden' });
    await list.getByRole('button', { name: /chat acme-mini/ }).click();
    await shown.getByText('the secret of the sea').waitFor();
    expect(await list.isVisible()).toBe(false);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    await page.goBack();
    await list.waitFor();
    // As after a restart: the page knows no request.
    await page.route('**/api/requests', (route) => route.abort());
    await page.setViewportSize({ width: 1280, height: 720 });
    await page.goto(`${gate.admin}/ui/`);
    await page.getByText('1 tool call in 24 h: echo 1').waitFor();
    await page.getByRole('radio', { name: '30 d' }).check();
    await page.getByRole('region', { name: 'Requests per day' }).locator('canvas').waitFor();
    await page.getByText('12 in, 7 out').waitFor();
    await page.goto(`${gate.admin}/ui/usage`);
    await page.getByRole('radio', { name: '24 h' }).check();
    await page.getByRole('region', { name: 'Requests per hour' }).locator('canvas').waitFor();
    for (const name of ['acme-mini', 'echo', 'one'])
      await page.getByRole('rowheader', { name, exact: true }).waitFor();
    await page.setViewportSize({ width: 390, height: 780 });
    const tooWide = `[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth).length`;
    expect(await page.evaluate(tooWide)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 720 });
    // The access log may have lost what the database has.
    await page.getByRole('link', { name: 'acme-mini' }).click();
    await page.getByRole('button', { name: 'model acme-mini' }).waitFor();
    await shown.getByText('the secret of the sea').waitFor();
    expect(await list.getByRole('listitem').count()).toBe(1);
    expect(problems).toEqual([]);
  },
);
