// The config editor, the CEL page and the playgrounds of the admin UI.
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gateway } from '../../test/kit/gateway.ts';
import { AUDIENCE, startIdp } from '../../test/kit/idp.ts';
import { openSession, toolCall } from '../../test/kit/mcp.ts';
import { root } from '../run.mjs';

const EVERYTHING = join(root, 'test/kit/everything-server.ts');

const yaml = (issuer) => `# Tools for the agents of the support team, and their models.
config:
  adminAddr: off
  database: {url: 'sqlite://./agctl.db'}
  modelCatalog:
  - inline: '{"providers": {"echo": {"models": {"small": {"rates": {"input": "0.6", "output": "2.4"}}}}}}'
frontendPolicies:
  accessLog:
    database: {payloads: full, add: {session: 'request.headers["x-conversation"]'}}
gateways:
  support:
    port: 0
    routes:
    - name: tools
      matches: [{path: {pathPrefix: /mcp}}]
      policies:
        cors:
          allowOrigins: ["https://chat.example.com"]
        apiKey:
          keys: [{key: support-team-1234567890, metadata: {team: support}}]
        authorization:
          rules: ['request.method in ["GET", "POST", "DELETE"]']
      backends:
      - mcp:
          targets:
          - name: everything
            stdio: {cmd: node, args: [everything.ts]}
    - name: crm
      matches: [{path: {pathPrefix: /crm}}]
      policies:
        mcpAuthentication:
          issuer: ${issuer}
          audiences: [${AUDIENCE}]
          resourceMetadata: {resource: http://localhost/crm}
          provider: {idpx: {}}
        authorization:
          rules: ['"crm" in jwt.groups']
      backends:
      - mcp:
          targets:
          - name: everything
            stdio: {cmd: node, args: [everything.ts]}
llm:
  port: 0
  models:
  - name: small
    provider: echo
    transformation:
      temperature: "0.2"
      max_tokens: "llmRequest.max_tokens < 256 ? llmRequest.max_tokens : 256"
  - name: plain
    provider: echo
`;

const KEYS = [
  ['ann-laptop', 'support', 'gpt-4o-mini, claude-*', '10USD/day, 2000000tokens/month'],
  ['ci-runner', '', '', '500000tokens/day'],
];

const QUESTION = 'Which tools may an agent of the support team call, and who decides that?';

/** Some turns of an agent, which asks a model and calls tools. */
async function conversation({ url, ports }) {
  const headers = { authorization: 'Bearer support-team-1234567890', 'x-conversation': 'support-17' };
  const ask = async (content) => {
    const answer = await fetch(`http://127.0.0.1:${ports[1]}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content }] }),
    });
    await answer.text();
  };
  const session = await openSession(`${url}/mcp`, headers);
  for (const [at, [question, tool]] of TURNS.entries()) {
    await ask(question);
    await session.send(toolCall(at, tool));
  }
  await ask('Thank you. Write that to the customer, please, with a link to the page on returns.');
}

const TURNS = [
  ['Which tools may an agent of the support team call?', 'test_simple_text'],
  ['And who decides that? '.repeat(8), 'test_error_handling'],
  ['What does the order 4711 look like?', 'test_no_such_tool'],
];

export const tools = {
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'agctl-screens-'));
    symlinkSync(EVERYTHING, join(folder, 'everything.ts'));
    const idp = await startIdp();
    const running = await gateway(yaml(idp.issuer), {
      admin: true,
      uiWrite: true,
      folder,
      webApp: join(root, 'dist/web/admin'),
      level: 'off',
    });
    await conversation(running);
    return {
      url: running.admin,
      async close() {
        await running.close();
        await idp[Symbol.asyncDispose]();
        rmSync(folder, { recursive: true });
      },
      pages: [
        {
          name: 'config',
          path: '/ui/config',
          async prepare(page) {
            const editor = page.getByRole('textbox', { name: 'Configuration, YAML' });
            await editor.getByText('cors').last().click();
            await page.keyboard.press('End');
            await page.keyboard.type('\n  allowMethod: [POST]');
            await page.getByText(/^✗ 1 error/).waitFor();
            await page.locator('.cm-lint-marker-error').waitFor();
          },
        },
        {
          name: 'cel',
          path: '/ui/cel',
          async prepare(page) {
            await page.getByLabel('Expression').fill('jwt.sub == "alice" && claims.isAdmin');
            await page.getByRole('button', { name: 'Evaluate' }).click();
            await page.locator('mark').waitFor();
          },
        },
        {
          name: 'mcp',
          path: '/ui/mcp',
          async prepare(page) {
            await page.getByLabel('Bearer token').fill('support-team-1234567890');
            await page.getByRole('button', { name: 'Connect' }).click();
            await page.getByText('✓ Connected').waitFor();
            await page.getByLabel('Search tools').fill('mirrored');
            await page.locator('.picker').getByRole('button', { name: 'test_mirrored_header' }).click();
            await page.getByRole('form').getByRole('textbox').first().fill('eu-west');
            await page.getByRole('button', { name: 'Call' }).click();
            await page.getByText(/✓ 200/).first().waitFor();
            await page.getByRole('article', { name: 'Trace' }).getByText('tools/call').first().waitFor();
            await page.evaluate(() => document.querySelector('.catalog').scrollIntoView());
          },
        },
        {
          name: 'llm',
          hasTwoPanes: true,
          path: '/ui/llm',
          async prepare(page) {
            await page.getByLabel('Message').fill(QUESTION);
            await page.keyboard.press('Control+Enter');
            await page.getByText('Time to first text').waitFor();
            await page.getByText('temperature set to').waitFor();
          },
        },
        {
          name: 'compare',
          path: '/ui/llm',
          async prepare(page) {
            await page.getByLabel('compare two models').check();
            await page.getByLabel('Message').fill(QUESTION);
            await page.keyboard.press('Control+Enter');
            await page.getByText('Time to first text').nth(1).waitFor();
            await page.getByText('temperature set to').waitFor();
          },
        },
        {
          name: 'connect',
          path: '/ui/connect',
          prepare: (page) => page.getByRole('heading', { name: 'Cursor' }).waitFor(),
        },
        {
          name: 'keys',
          path: '/ui/keys',
          async prepare(page) {
            await page.getByLabel('Name').waitFor();
            if ((await page.getByRole('row', { name: /^ann-laptop/ }).count()) > 0) return;
            for (const [name, team, models, budgets] of KEYS) {
              if ((await page.getByRole('row', { name: new RegExp(`^${name}`) }).count()) > 0) continue;
              await page.getByRole('textbox', { name: 'Team' }).fill(team);
              await page.getByLabel('Name').fill(name);
              await page.getByLabel('Models (').fill(models);
              await page.getByLabel('Budgets (').fill(budgets);
              await page.getByRole('button', { name: 'Create' }).click();
              await page.getByRole('row', { name: new RegExp(`^${name}|^There`) }).waitFor();
            }
            // Without the key that was just created: pictures are published.
            await page.reload();
            await page.getByRole('region', { name: /^Spend/ }).waitFor();
            await page.getByRole('heading', { name: 'Keys', exact: true, level: 2 }).scrollIntoViewIfNeeded();
          },
        },
        {
          name: 'audit',
          path: '/ui/audit',
          async prepare(page) {
            const post = (path, body) =>
              page.request.post(new URL(path, page.url()).href, body === undefined ? {} : { data: body });
            if (
              (await (await page.request.get(new URL('/api/audit', page.url()).href)).json()).events.length <
              4
            ) {
              for (const [name] of KEYS) await post('/api/keys', { name: `${name}-2` });
              await post('/api/keys/revoke', { key: `${KEYS[1][0]}-2` });
              await post('/api/keys/revoke', { key: 'ci-rnner' });
              await post('/logging?level=mcp%3Ddebug&for=10m');
            }
            await page.reload();
            await page
              .getByRole('row', { name: /^log\.level/ })
              .first()
              .waitFor();
          },
        },
        {
          name: 'conversations',
          path: '/ui/conversations',
          async prepare(page) {
            await page
              .getByRole('button', { name: /chat small/ })
              .first()
              .click();
            await page.getByRole('region', { name: 'Conversation' }).getByText('answer').first().waitFor();
          },
        },
        {
          name: 'sessions',
          path: '/ui/sessions',
          async prepare(page) {
            await page
              .getByRole('row', { name: /session support-17/ })
              .getByRole('link')
              .click();
            await page.locator('.lane').first().waitFor();
          },
        },
        {
          name: 'auth',
          path: '/ui/auth',
          async prepare(page) {
            await page.getByLabel('Bearer token').fill(idp.token({ groups: ['support', 'everyone'] }));
            await page.getByRole('button', { name: 'Try it' }).click();
            await page.getByText('rejected 403').waitFor();
            await page.getByText('accepted').first().waitFor();
            await page.evaluate(() => scrollTo(0, 0));
          },
        },
      ],
    };
  },
};
