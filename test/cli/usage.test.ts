import { describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { fakeAdmin, says } from '../kit/fake-admin.ts';
import { gateway } from '../kit/gateway.ts';

const SUMS = {
  requests: 1200,
  errors: 3,
  refused: 40,
  inputTokens: 1_234_567,
  outputTokens: 89,
  cachedInputTokens: 0,
  costUsd: '12.3456789',
};
const USAGE = {
  by: ['key', 'model'],
  rows: [
    { group: { key: 'alice, "laptop"', model: 'acme-mini' }, ...SUMS },
    { group: { key: '', model: '=cmd()' }, ...SUMS, requests: 1, costUsd: '0.00042' },
  ],
  total: { ...SUMS, requests: 1201, costUsd: '12.3460989' },
  isCut: false,
};

const run = async (answer: object, ...args: string[]) => {
  await using server = await fakeAdmin({ '/api/usage': says(JSON.stringify(answer), 'application/json') });
  const result = await cli(['usage', '--admin', server.address, ...args]);
  return { ...result, asked: server.asked };
};

describe('`agctl usage`', () => {
  test('prints a table with numbers that end in the same column', async () => {
    const { stdout, code, asked } = await run(USAGE, '--by', 'key,model', '--since', '30d');
    expect(code).toBe(0);
    expect(asked[0]?.url).toBe('/api/usage?by=key%2Cmodel&since=30d');
    expect(stdout).toBe(
      [
        'KEY              MODEL      REQUESTS  ERRORS  REFUSED      INPUT  OUTPUT  CACHED      USD',
        'alice, "laptop"  acme-mini     1,200       3       40  1,234,567      89       0    12.35',
        '-                =cmd()            1       3       40  1,234,567      89       0  0.00042',
        'total                          1,201       3       40  1,234,567      89       0    12.35',
        '',
      ].join('\n'),
    );
  });

  test('-o csv prints exact amounts, and no field that a spreadsheet would execute', async () => {
    const { stdout } = await run(USAGE, '-o', 'csv');
    expect(stdout).toBe(
      'key,model,requests,errors,refused,inputTokens,outputTokens,cachedInputTokens,costUsd\r\n' +
        '"alice, ""laptop""",acme-mini,1200,3,40,1234567,89,0,12.3456789\r\n' +
        ",'=cmd(),1,3,40,1234567,89,0,0.00042\r\n",
    );
  });

  test('-o json prints what the gateway answers', async () => {
    const { stdout } = await run(USAGE, '-o', 'json');
    expect(JSON.parse(stdout)).toEqual(USAGE);
  });

  test('says that there were no requests', async () => {
    expect((await run({ ...USAGE, rows: [] }, '--since', '1h')).stdout).toBe('no requests since 1h\n');
    expect(await run(USAGE, '--since', 'nope')).toMatchObject({ code: 2, asked: [] });
  });

  test('fails if rows are missing from what it printed', async () => {
    const { code, stderr } = await run({ ...USAGE, isCut: true });
    expect(code).toBe(1);
    expect(stderr).toContain('there are more rows than shown');
  });

  test.each([
    ['usage', 'records of requests'],
    ['keys list', 'keys and budgets'],
    ['keys create --name ann', 'keys and budgets'],
    ['keys revoke ann', 'keys and budgets'],
  ])('`agctl %s` says that the gateway needs a database', async (command, what) => {
    await using gate = await gateway(CONFIG, { admin: true });
    const { code, stderr } = await cli([...command.split(' '), '--admin', new URL(gate.admin).host]);
    expect(code).toBe(1);
    expect(stderr).toContain(`the gateway has no database for ${what}: set config.database.url`);
  });

  test('an unknown group is refused with all groups, before a gateway is asked', async () => {
    const { code, stderr, asked } = await run(USAGE, '--by', 'model,colour');
    expect([code, asked]).toEqual([2, []]);
    expect(stderr).toContain(
      '--by has the unknown value "colour": expected key, user, group, provider, model,',
    );
  });
});

const CONFIG = JSON.stringify({
  gateways: { default: { port: 0, routes: [{ policies: { directResponse: { status: 200 } } }] } },
});

// Other servers answer at the port of an admin server, and gateways of other versions: agentgateway has the same default.
test.each([null, 5, [[]], {}, { by: 'key' }, { by: [5], rows: [] }, { by: [], rows: {} }])(
  '`agctl usage` names an admin server that answers %j as none',
  async (answer) => {
    const { code, stderr } = await run(answer as object);
    expect(code).toBe(3);
    expect(stderr).toContain('is not an admin server: GET /api/usage returns something else');
  },
);

test.each([null, 5, {}, { group: null }, { group: { key: 5 }, requests: '7', costUsd: 5 }])(
  '`agctl usage` shows a row that is %j as one without requests',
  async (row) => {
    for (const output of ['table', 'csv']) {
      const { code, stdout } = await run({ by: ['key'], rows: [row], total: null }, '--output', output);
      expect(code).toBe(0);
      expect(stdout).toMatch(output === 'csv' ? /^,0,0,0,0,0,0,0\r$/m : /^- +0 +0 +0 +0 +0 +0 +0\.00$/m);
    }
  },
);

test('`agctl keys list` shows keys that lack members', async () => {
  const keys = [null, {}, { budgets: 5, allowedModels: 'x', createdAt: 1 }];
  await using server = await fakeAdmin({ '/api/keys': says(JSON.stringify({ keys })) });
  const { code, stdout } = await cli(['keys', 'list', '--admin', server.address]);
  expect([code, stdout.split('\n').length]).toEqual([0, 5]);
});
