import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { AuditEventView, AuditView } from '../../src/core/audit-view.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../kit/gateway.ts';
import { freePort } from '../kit/ports.ts';
import { type HttpReply, send } from '../kit/send.ts';
import { until } from '../kit/until.ts';

/** Secrets that must be in no event. */
const CANARIES = {
  configured: 'sk-canary-configured-1',
  typed: 'ghp_canaryCanaryCanaryCanaryCanary0123456789',
};

const CONFIG = {
  config: {
    adminAddr: 'off',
    database: { url: 'sqlite://./audit.db' },
    audit: { file: 'audit.jsonl' },
    session: { key: '0'.repeat(64) },
    mcp: { signIn: { url: 'http://127.0.0.1/sign-in' } },
  },
  gateways: { default: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
  llm: {
    port: 0,
    models: [
      {
        name: 'm',
        provider: 'oaiCompat',
        params: { baseUrl: 'http://127.0.0.1:9', apiKey: CANARIES.configured },
      },
    ],
  },
};

const start = (folder: string, config: object = {}, options: TestGatewayOptions = {}): Promise<TestGateway> =>
  gateway(JSON.stringify({ ...CONFIG, config: { ...CONFIG.config, ...config } }), {
    admin: true,
    folder,
    uiWrite: true,
    live: 'asked',
    ...options,
  });

const post = (
  gate: TestGateway,
  path: string,
  body: object | string = '',
  headers = {},
): Promise<HttpReply> =>
  send(`${gate.admin}${path}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers,
  });

async function listed(gate: TestGateway, query = ''): Promise<AuditView> {
  const { status, text } = await send(`${gate.admin}/api/audit${query}`);
  expect([status, text.slice(0, 200)]).toEqual([200, expect.stringContaining('"events"')]);
  return JSON.parse(text) as AuditView;
}

const inFile = (folder: string): AuditEventView[] =>
  readFileSync(join(folder, 'audit.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditEventView);

const inLog = (gate: TestGateway): string[] => gate.log.filter((line) => line.includes('\tinfo\taudit\t'));

/** Characters that end or change a line at a terminal. */
const CONTROLS = /(?!\t)[\p{Cc}\u2028\u202e]/u;

/** The first events of a trace stream are enough. */
async function arm(gate: TestGateway, query: string): Promise<void> {
  const leave = new AbortController();
  const response = await fetch(`${gate.admin}/debug/trace${query}`, { signal: leave.signal });
  expect(response.status).toBe(200);
  leave.abort();
}

describe('who has changed what', () => {
  test('each change is one event in the log, in the file and in the database, with who, from where and what', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    const created = JSON.parse((await post(gate, '/api/keys', { name: 'ci' })).text) as {
      key: { id: string };
    };
    await post(gate, '/api/keys/revoke', { key: 'ci' });
    await post(gate, '/logging?level=mcp%3Ddebug&for=10m');
    await arm(gate, '?count=2&expression=request.path%20%3D%3D%20"/a"');
    const file = JSON.parse((await send(`${gate.admin}/api/config/file`)).text) as {
      text: string;
      hash: string;
    };
    const written = await post(gate, '/api/config', { text: `${file.text}\n`, hash: file.hash });
    const { hash } = JSON.parse(written.text) as { hash: string };
    await gate.live.reload({ kind: 'signal', name: 'SIGHUP' });
    const path = join(folder.path, 'test.yaml');
    const { events, next, kept } = await listed(gate);
    expect([next, kept]).toEqual([null, true]);
    const local = { actor: { kind: 'local', name: userInfo().username }, from: { address: '127.0.0.1' } };
    const target = `${created.key.id} (ci)`;
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    const stamp = {
      time: expect.any(String),
      gateway: expect.stringMatching(new RegExp(`^\\S+/${process.pid} \\d`)),
    };
    expect(events.toReversed()).toEqual([
      { ...local, ...stamp, action: 'key.create', outcome: 'done', target, after: digest },
      {
        ...local,
        ...stamp,
        action: 'key.revoke',
        outcome: 'done',
        target,
        before: digest,
        after: digest,
      },
      {
        ...local,
        ...stamp,
        action: 'log.level',
        outcome: 'done',
        detail: expect.stringMatching(/^from \S+ to \S*mcp=debug\S* for 10m$/),
      },
      {
        ...local,
        ...stamp,
        action: 'trace.arm',
        outcome: 'done',
        detail: 'count=2&expression=request.path == "/a"',
      },
      {
        ...local,
        ...stamp,
        action: 'configuration.write',
        outcome: 'done',
        target: path,
        before: file.hash,
        after: hash,
        detail: 'restart to apply it',
      },
      {
        ...stamp,
        action: 'configuration.reload',
        outcome: 'done',
        actor: { kind: 'signal', name: 'SIGHUP' },
        target: path,
        before: file.hash,
        after: hash,
      },
    ]);
    // What a revoked key was before is what it was created as.
    expect(events[4]?.before).toBe(events[5]?.after);
    expect(inFile(folder.path)).toEqual(events.toReversed());
    expect(inLog(gate).map((line) => line.split('\t')[3])).toEqual(
      events.toReversed().map(({ action }) => action),
    );
    expect(statSync(join(folder.path, 'audit.jsonl')).mode & 0o777).toBe(0o600);
  });

  test('what changes nothing is no event', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    await post(gate, '/logging');
    await post(gate, '/api/cel', { expression: '1' });
    await post(gate, '/api/config/validate', '{}');
    for (const path of ['/api/keys', '/config_dump', '/api/overview', '/logging', '/memory'])
      await send(`${gate.admin}${path}`);
    expect((await listed(gate)).events).toEqual([]);
    await post(gate, '/api/keys', { name: 'ci' });
    for (const wasRevoked of [false, true, true])
      expect(JSON.parse((await post(gate, '/api/keys/revoke', { key: 'ci' })).text)).toMatchObject({
        wasRevoked,
      });
    const { events } = await listed(gate);
    expect(events.map(({ action }) => action)).toEqual(['key.revoke', 'key.create']);
  });

  test('a shutdown is an event, which is written before the database is closed', async () => {
    await using folder = await temporaryFolder();
    const gate = await start(folder.path);
    expect((await post(gate, '/quitquitquit')).text).toBe('shutdown now\n');
    await gate.close();
    await using again = await start(folder.path);
    expect((await listed(again)).events).toMatchObject([{ action: 'shutdown', outcome: 'done' }]);
  });

  test('attempts that fail are events with the reason, and so are a reload and a file that are not valid', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    await post(gate, '/api/keys', { name: '' });
    await post(gate, '/api/keys/revoke', { key: 'nobody' });
    await post(gate, '/logging?level=loud');
    await post(gate, '/api/config', { text: 'a: 1', hash: 'x' });
    writeFileSync(join(folder.path, 'test.yaml'), 'gateways: {a: {prt: 1}}\n');
    await gate.live.reload();
    const changed = { ...CONFIG, config: { ...CONFIG.config, adminRoles: { local: 'editor' }, workers: 2 } };
    writeFileSync(join(folder.path, 'test.yaml'), JSON.stringify(changed));
    await gate.live.reload();
    const { events } = await listed(gate);
    expect(events.toReversed().map(({ action, outcome, detail }) => [action, outcome, detail])).toEqual([
      ['key.create', 'failed', expect.stringContaining('`name`')],
      ['key.revoke', 'failed', expect.stringContaining('no key has the id or name `nobody`')],
      ['log.level', 'failed', expect.stringContaining('loud')],
      ['configuration.write', 'failed', expect.stringContaining('load it again')],
      ['configuration.reload', 'failed', expect.stringContaining('prt')],
      [
        'configuration.reload',
        'done',
        'changed: sections: config.adminRoles; after a restart: config.workers',
      ],
    ]);
  });

  test('no level hides an event in the log', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    await post(gate, '/logging?level=off');
    await post(gate, '/api/keys', { name: 'quiet' });
    expect(inLog(gate).map((line) => line.split('\t')[3])).toEqual(['log.level', 'key.create']);
  });

  test('names with line breaks, escape sequences and thousands of characters forge no line and fill none', async () => {
    await using folder = await temporaryFolder();
    const roles = { editor: ['e'], local: 'operator', proxy: { addresses: ['127.0.0.1'] } };
    await using gate = await start(folder.path, { adminRoles: roles });
    const forged = '2026-01-01T00:00:00.000000Z\tinfo\taudit\tkey.create\toutcome="done"';
    const names = [
      `ann\u2028${forged}`,
      'ann"}\\n{"action":"key.create"}',
      'ann\u202e\u009b2J',
      'x'.repeat(7_000),
    ];
    for (const name of names)
      await post(gate, `/logging?level=off`, '', {
        'x-forwarded-user': Buffer.from(name).toString('latin1'),
        'x-forwarded-groups': 'e',
      });
    await post(
      gate,
      '/api/keys/revoke',
      { key: `ann\n${forged}\u001b[2J` },
      {
        'x-forwarded-user': 'ann',
        'x-forwarded-groups': 'e',
      },
    );
    expect(inLog(gate)).toHaveLength(5);
    for (const line of inLog(gate)) {
      expect(line.slice(0, -1)).not.toMatch(CONTROLS);
      expect(line.length).toBeLessThan(1500);
    }
    const lines = readFileSync(join(folder.path, 'audit.jsonl'), 'utf8').split('\n');
    expect(lines).toHaveLength(6);
    for (const line of lines) expect(line).not.toMatch(CONTROLS);
    expect(inFile(folder.path).map(({ action }) => action)).toEqual([
      ...names.map(() => 'log.level'),
      'key.revoke',
    ]);
  });

  test('no secret is in an event: neither a configured one nor a created key, nor one in a name, an expression or a file', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    const { text } = await post(gate, '/api/keys', { name: 'ci' });
    const { secret } = JSON.parse(text) as { secret: string };
    await post(gate, '/api/keys/revoke', { key: secret });
    await post(gate, '/api/keys/revoke', { key: CANARIES.configured });
    await post(gate, '/api/keys', { name: CANARIES.typed });
    await arm(gate, `?expression=${encodeURIComponent(`request.headers["x"] == "${CANARIES.configured}"`)}`);
    await arm(gate, `?expression=${encodeURIComponent(`request.headers["x"] == "${CANARIES.typed}"`)}`);
    const file = JSON.parse((await send(`${gate.admin}/api/config/file`)).text) as {
      text: string;
      hash: string;
    };
    await post(gate, '/api/config', { text: `${file.text}\n`, hash: file.hash });
    await gate.live.reload();
    const { events } = await listed(gate);
    expect(events).toHaveLength(8);
    const everything = JSON.stringify(events) + inLog(gate).join('') + JSON.stringify(inFile(folder.path));
    for (const canary of [secret, ...Object.values(CANARIES)]) expect(everything).not.toContain(canary);
    // Neither is the hash by which a key is looked up.
    const { createHash } = await import('node:crypto');
    expect(everything).not.toContain(createHash('sha256').update(secret).digest('hex'));
  });
});

describe('attempts that are refused', () => {
  const roles = { viewer: ['v'], editor: ['e'], proxy: { addresses: ['127.0.0.1'] } };
  const as = (group: string) => ({ 'x-forwarded-user': 'ann', 'x-forwarded-groups': group });

  test('an attempt without the role is an event with the role that the caller has', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path, { adminRoles: roles });
    expect((await post(gate, '/api/keys', { name: 'x' }, as('v'))).status).toBe(403);
    expect((await post(gate, '/quitquitquit', '', as('x'))).status).toBe(403);
    const { text } = await send(`${gate.admin}/api/audit`, { headers: as('e') });
    const from = { address: '127.0.0.1', proxy: '127.0.0.1' };
    expect((JSON.parse(text) as AuditView).events).toMatchObject([
      { action: 'shutdown', outcome: 'refused', from, actor: { kind: 'proxy', name: 'ann', role: 'none' } },
      {
        action: 'key.create',
        outcome: 'refused',
        from,
        actor: { kind: 'proxy', name: 'ann', role: 'viewer' },
      },
    ]);
  });

  test('a read-only gateway refuses, which is an event', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path, { storage: { mode: 'readOnly' } });
    await post(gate, '/api/keys', { name: 'x' });
    expect((await listed(gate)).events).toMatchObject([
      { action: 'key.create', outcome: 'refused', detail: expect.stringContaining('read-only') },
    ]);
  });

  // A sum hides who was refused (open-policy-agent/opa#7446), and a log alone is not where it is looked for.
  test('whoever is refused again and again neither fills the disk nor hides others, and an event for each says how often, everywhere', async () => {
    await using folder = await temporaryFolder();
    const limits = { auditRefusalsPerCaller: 3, auditRefusalsInterval: 500 };
    await using gate = await start(folder.path, { adminRoles: roles }, { limits });
    for (let count = 0; count < 10; count += 1) await post(gate, '/quitquitquit', '', as('x'));
    await post(gate, '/api/keys', { name: 'x' }, as('x'));
    await post(gate, '/api/keys', { name: 'x' }, { ...as('x'), 'x-forwarded-user': 'bob' });
    expect(inFile(folder.path).map(({ action, actor }) => [actor.name, action])).toEqual([
      ...Array<unknown>(3).fill(['ann', 'shutdown']),
      ['bob', 'key.create'],
    ]);
    await until(() => inFile(folder.path).length > 4);
    const summary = {
      action: 'refusals.omitted',
      outcome: 'refused',
      actor: { kind: 'proxy', name: 'ann' },
      from: { address: '127.0.0.1', proxy: '127.0.0.1' },
      detail: '8 more attempts within a minute: shutdown (7), key.create (1)',
    };
    expect(inFile(folder.path).slice(4)).toMatchObject([summary]);
    expect(inLog(gate).at(-1)).toContain('8 more attempts within a minute');
    const { text } = await send(`${gate.admin}/api/audit?actor=ann`, { headers: as('e') });
    expect((JSON.parse(text) as AuditView).events[0]).toMatchObject(summary);
    expect((await send(`${gate.admin}/metrics`, { headers: as('e') })).text).toContain(
      'gw_audit_refusals_omitted_total 8',
    );
    // Another minute.
    await post(gate, '/quitquitquit', '', as('x'));
    expect(inFile(folder.path)).toHaveLength(6);
  });

  test('many callers are counted together, and the end of the gateway ends the minute', async () => {
    await using folder = await temporaryFolder();
    const limits = { auditRefusals: 4, auditCallers: 2 };
    {
      await using gate = await start(folder.path, { adminRoles: roles }, { limits });
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
        await post(gate, '/quitquitquit', '', { ...as('x'), 'x-forwarded-user': name });
      expect(inFile(folder.path)).toHaveLength(4);
    }
    expect(inFile(folder.path).slice(4)).toMatchObject([
      {
        action: 'refusals.omitted',
        actor: { kind: 'unknown', name: 'other callers' },
        detail: '2 more attempts within a minute: shutdown (2)',
      },
    ]);
  });

  test('a refused write of the configuration says why', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path, {}, { uiWrite: false });
    await post(gate, '/api/config', { text: 'a: 1', hash: 'x' });
    expect((await listed(gate)).events).toMatchObject([
      { action: 'configuration.write', outcome: 'refused', detail: expect.stringContaining('--ui-write') },
    ]);
  });

  test.each([
    ['a Host of someone else', { host: 'evil.example' }, 'DNS rebinding'],
    ['an Origin of someone else', { origin: 'https://evil.example' }, 'evil.example'],
    ['a caller that another gateway vouches for', { 'x-agctl-caller': 'a.b' }, 'another gateway'],
  ])('a request with %s is an event', async (_title, headers, why) => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    expect((await post(gate, '/api/keys?a=1', { name: 'x' }, headers)).status).toBe(403);
    expect((await listed(gate)).events).toMatchObject([
      {
        action: 'admin.request',
        outcome: 'refused',
        target: 'POST /api/keys',
        from: { address: '127.0.0.1' },
        detail: expect.stringContaining(why),
      },
    ]);
  });
});

describe('callers of the pages on a gateway', () => {
  test('an event names the subject, user or key, and the address of the client behind a trusted proxy', async () => {
    await using folder = await temporaryFolder();
    const adminPort = await freePort();
    await using gate = await start(folder.path, {}, {}).then(async (first) => {
      await first.close();
      return gateway(
        JSON.stringify({
          config: {
            ...CONFIG.config,
            adminAddr: `127.0.0.1:${adminPort}`,
            http: { trustedProxies: ['127.0.0.1'] },
          },
          gateways: { default: { port: 0 } },
          ui: {
            policies: {
              basicAuth: {
                // Of `pass-bcrypt`.
                htpasswd: 'bob:$2b$05$rx3kv.hLXI.t4LslurB.PuxMUYBS.Je9j4c5Gexz1IZNjh5SWfwAS'.replaceAll(
                  '$',
                  '$$$$',
                ),
              },
              apiKey: { keys: [{ key: 'k', metadata: { name: 'ci' } }] },
            },
          },
        }),
        { admin: true, adminPort, folder: folder.path },
      );
    });
    const level = (authorization: string): Promise<HttpReply> =>
      send(`${gate.url}/logging?level=debug`, {
        method: 'POST',
        headers: { authorization, 'x-forwarded-for': '203.0.113.7' },
      });
    expect((await level('Bearer k')).status).toBe(200);
    expect((await level(`Basic ${Buffer.from('bob:pass-bcrypt').toString('base64')}`)).status).toBe(200);
    const from = { address: '203.0.113.7', proxy: '127.0.0.1' };
    const { events } = await listed(gate);
    expect(events).toMatchObject([
      { action: 'log.level', actor: { kind: 'user', name: 'bob' }, from },
      { action: 'log.level', actor: { kind: 'key', name: 'ci' }, from },
    ]);
  });
});

describe('where events are kept', () => {
  test('pages list all events once, newest first, and can be filtered', async () => {
    await using folder = await temporaryFolder();
    for (const database of [CONFIG.config.database, undefined]) {
      await using gate = await start(folder.path, { database, mcp: {} });
      for (let count = 0; count < 7; count += 1)
        await post(gate, `/logging?level=mcp%3D${count % 2 ? 'debug' : 'loud'}`);
      await arm(gate, '');
      const seen: AuditEventView[] = [];
      let next: number | null = null;
      do {
        const page: AuditView = await listed(gate, `?limit=3${next === null ? '' : `&after=${next}`}`);
        expect(page.events.length).toBeLessThanOrEqual(3);
        expect(page.kept).toBe(database !== undefined);
        seen.push(...page.events);
        next = page.next;
      } while (next !== null);
      expect(seen.map(({ action }) => action)).toEqual(['trace.arm', ...Array<string>(7).fill('log.level')]);
      expect((await listed(gate, '?outcome=failed')).events).toHaveLength(4);
      expect((await listed(gate, '?action=trace.arm')).events).toHaveLength(1);
      expect((await listed(gate, `?actor=${userInfo().username}&since=1h`)).events).toHaveLength(8);
      expect((await listed(gate, '?actor=nobody')).events).toEqual([]);
      expect((await listed(gate, '?to=2020-01-01')).events).toEqual([]);
      for (const wrong of ['?limit=0', '?limit=501', '?after=x', '?outcome=odd', '?who=x', '?since=soon'])
        expect([wrong, (await send(`${gate.admin}/api/audit${wrong}`)).status]).toEqual([wrong, 400]);
    }
  });

  test('a file that was rotated is created anew', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    await post(gate, '/logging?level=debug');
    renameSync(join(folder.path, 'audit.jsonl'), join(folder.path, 'audit.1'));
    await post(gate, '/logging?level=info');
    expect(inFile(folder.path)).toHaveLength(1);
    expect(readFileSync(join(folder.path, 'audit.1'), 'utf8').split('\n')).toHaveLength(2);
  });

  test('an event after an unfinished line, of a process that has crashed, is a line of its own', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'audit.jsonl');
    writeFileSync(file, '{"time":"2026-01-01T00:00:00.000Z","action":"key.cre');
    await using gate = await start(folder.path);
    await post(gate, '/logging?level=debug');
    appendFileSync(file, '{"half');
    await post(gate, '/logging?level=info');
    const lines = readFileSync(file, 'utf8').split('\n');
    expect(lines).toHaveLength(5);
    expect([lines[1], lines[3]].map((line) => (JSON.parse(line ?? '') as AuditEventView).action)).toEqual([
      'log.level',
      'log.level',
    ]);
  });

  test('an event that cannot be written to the file is logged, counted and said in the answer, and the change stands', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    mkdirSync(join(folder.path, 'audit.jsonl'));
    const reply = await post(gate, '/api/keys', { name: 'ci' });
    expect([reply.status, reply.headers['x-agctl-audit-failed']]).toEqual([200, 'file']);
    expect(gate.log.some((line) => line.includes('events cannot be written to the file'))).toBe(true);
    expect((await send(`${gate.admin}/metrics`)).text).toContain('gw_audit_failures_total{sink="file"} 1');
    expect((await listed(gate)).events).toMatchObject([{ action: 'key.create' }]);
    expect(inLog(gate)).toHaveLength(1);
    const made = await cli(['keys', 'create', '--name', 'other', '--admin', gate.admin]);
    expect([made.code, made.stderr]).toEqual([
      0,
      expect.stringMatching(
        /^warning: the gateway could not write this to its audit \(file\).*\nwarning: no route .* accepts the key.*\ncreated `other`/,
      ),
    ]);
    rmdirSync(join(folder.path, 'audit.jsonl'));
    await post(gate, '/logging?level=info');
    expect(gate.log.join('')).toContain('events are written to the file again');
  });

  test('a named pipe that nobody reads holds up neither a change nor the end of the gateway', async () => {
    await using folder = await temporaryFolder();
    execFileSync('mkfifo', [join(folder.path, 'audit.jsonl')]);
    await using gate = await start(folder.path);
    const reply = await post(gate, '/logging?level=debug');
    expect([reply.status, reply.headers['x-agctl-audit-failed']]).toEqual([200, 'file']);
    expect((await send(`${gate.admin}/metrics`)).text).toContain('gw_audit_failures_total{sink="file"} 1');
  });

  test('an event that cannot be written to the database is logged, counted and said in the answer, and the change stands', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path);
    await gate.running.close();
    const reply = await post(gate, '/logging?level=warn');
    expect([reply.status, reply.headers['x-agctl-audit-failed']]).toEqual([200, 'database']);
    expect(inFile(folder.path)).toHaveLength(1);
    expect(gate.directives.current).toContain('warn');
  });

  test('two gateways write to one database and one file', async () => {
    await using folder = await temporaryFolder();
    await using first = await start(folder.path);
    await using second = await start(folder.path);
    await Promise.all(
      [first, second].flatMap((gate) =>
        Array.from({ length: 20 }, (_, index) => post(gate, `/api/keys`, { name: `k${index}` })),
      ),
    );
    expect((await listed(first, '?limit=500')).events).toHaveLength(40);
    expect(inFile(folder.path)).toHaveLength(40);
  });

  test('events older than `retention` are deleted, others are not', async () => {
    await using folder = await temporaryFolder();
    await using gate = await start(
      folder.path,
      { audit: { retention: '1s' } },
      { limits: { auditExpiryInterval: 50 } },
    );
    await post(gate, '/logging?level=debug');
    expect((await listed(gate)).events).toHaveLength(1);
    await until(async () => (await listed(gate)).events.length === 0);
    await post(gate, '/logging?level=debug');
    expect((await listed(gate)).events).toHaveLength(1);
  });
});
