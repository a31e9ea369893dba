import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { stepToShow } from '../../../src/core/trace/problem.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../../src/core/trace-model.ts';
import { cli, type Ran } from '../../kit/cli.ts';
import { DENIED, type FakeAdmin, fakeAdmin, frames, says, streams } from '../../kit/fake-admin.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { AGCTL } from '../../kit/process.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

// Uses a scripted admin server that can misbehave; trace-live.test.ts uses real gateways.

const folder = await temporaryFolder();
afterAll(() => folder.remove());
const traced = (...pieces: (string | Buffer)[]): Promise<FakeAdmin> =>
  fakeAdmin({ '/debug/trace': streams(...pieces) });
const trace = (admin: FakeAdmin, ...args: string[]): Promise<Ran> =>
  cli(['proxy', 'trace', '--admin', admin.address, ...args], { cwd: folder.path });
const LINES = DENIED.map((event) => JSON.stringify(event));

const TEXT = `     0.04 ms  request            POST /mcp  tools/call echo from 127.0.0.1:50412
     0.09 ms  route              selected gateway/edge/default/tools (2 evaluated)   gateway.yaml:9:7
              not gateway/edge/default/health: the path is not /healthz
     0.10 ms  policies           route: cors, authorization
     0.12 ms  cors               skipped: no Origin header
     0.31 ms  cel                "admin" in jwt.roles => false   0.06ms
              jwt.roles = ["user"]
     0.32 ms  authorization      DENIED by rules[0] "admin" in jwt.roles
              rules[0] require: "admin" in jwt.roles => false   decided, gateway.yaml:23:17
     0.40 ms  done               403, authorization failed
POST /mcp  tools/call echo  route tools  403, denied by authorization: rules[0] "admin" in jwt.roles  (gateway.yaml:23:17)  0.40ms
`;

describe('trace text', () => {
  test('trace text shows why the route was chosen, the policies, skipped ones, values, the deciding rule and the status', async () => {
    await using admin = await traced(frames(DENIED));
    const { code, stdout, stderr } = await trace(admin);
    expect([code, stderr]).toEqual([0, `waiting for the next request at ${admin.address} (Ctrl-C stops)\n`]);
    expect(stdout).toBe(TEXT);
    expect(admin.asked).toEqual([{ method: 'POST', url: '/debug/trace', host: admin.address }]);
  });

  test('trace text of a saved trace is the same, and a file may contain several traces', async () => {
    await writeFile(join(folder.path, 'two.jsonl'), `${LINES.join('\n')}\n${LINES.join('\n')}`);
    const { code, stdout } = await cli(['proxy', 'trace', '--file', 'two.jsonl'], { cwd: folder.path });
    expect([code, stdout]).toEqual([0, TEXT + TEXT]);
  });

  test('trace text shows a client that a proxy has named without a port, which nobody knows', async () => {
    for (const [address, shown] of [
      ['203.0.113.7', '203.0.113.7'],
      ['2001:db8::1', '2001:db8::1'],
    ]) {
      const lines = LINES.map((line) =>
        line.replace('"127.0.0.1"', `"${address}"`).replace(/"port":50412/, '"port":0'),
      );
      await using admin = await traced(`data: ${lines.join('\n\ndata: ')}\n\n`);
      expect((await trace(admin)).stdout.split('\n')[0]).toMatch(new RegExp(` from ${shown}$`));
    }
  });

  test('trace text escapes terminal control characters', async () => {
    const hostile = JSON.stringify({
      eventStart: null,
      eventEnd: 1,
      severity: 'info',
      scope: ['\u001b[2J'],
      message: {
        type: 'policy',
        kind: 'x\u009b2J',
        result: { type: 'skip', reason: 'a\nb\u001b]52;c;x\u0007\u202e' },
        configFile: '\u001b]0;t\u0007',
        configLine: 1,
      },
    });
    const finished = JSON.stringify({
      eventEnd: 2,
      message: { type: 'requestFinished', status: 200, error: '\u001b[31m' },
    });
    await using admin = await traced(`: ready\n\ndata: ${hostile}\n\ndata: ${finished}\n\n`);
    const { code, stdout } = await trace(admin);
    expect(code).toBe(0);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(stdout).toContain('\\u{1b}]52;c;x\\u{7}');
  });
});

describe('trace events of other versions', () => {
  test('trace events may have comments, CRLF, `event:`, several `data:` lines, JSON Lines, unknown types and missing members', async () => {
    const [first, ...rest] = LINES;
    await using admin = await traced(
      ': ready\r\n\r\n',
      `event: trace\r\nid: 1\r\ndata: ${first}\r\n\r\n`,
      `data:${'{"eventEnd":1,"message":'}\ndata: {"type":"laterKind","x":1}}\n\n`,
      '{"type":"serialization_error","error":"e"}\n: keepalive\n\n',
      'data: {"message":{"type":"policy"}}\n\ndata: {"message":{"type":"authorizationResult"}}\n\ndata: {"message":{"type":"routeSelection"}}\n\n',
      'data: {"eventEnd":"x","severity":9,"scope":"y","message":{"type":"cel","expr":5,"result":{"error":"e"}}}\n\n',
      rest.map((line) => `data: ${line}\n\n`).join(''),
    );
    const { code, stdout } = await trace(admin);
    expect(code).toBe(0);
    expect(stdout).toContain('laterKind          {"x":1}');
    expect(stdout).toContain('403, denied by authorization');
  });

  test('a trace event of 8 MiB in small chunks that split characters is read', async () => {
    const large = JSON.stringify({
      eventEnd: 1,
      message: { type: 'bodySnapshot', stage: 'response', body: 'é'.repeat(4 * 2 ** 20) },
    });
    const bytes = Buffer.from(
      `: ready\n\ndata: ${large}\n\n${LINES.map((line) => `data: ${line}\n\n`).join('')}`,
    );
    const pieces = Array.from({ length: Math.ceil(bytes.length / 65_537) }, (_, index) =>
      bytes.subarray(index * 65_537, (index + 1) * 65_537),
    );
    await using admin = await traced(...pieces);
    const { code, stdout } = await trace(admin, '--raw');
    expect([code, stdout === `${large}\n${LINES.join('\n')}\n`]).toEqual([0, true]);
  });
});

describe('--raw and --save', () => {
  test('trace --raw prints the events as sent, one per line, and nothing else on stdout', async () => {
    const odd = '{"eventEnd": 7,  "message":{"type":"later","n":1.50,"big":9007199254740993}}';
    await using admin = await traced(`: ready\n\ndata: ${odd}\n\n`, frames(DENIED));
    const { code, stdout, stderr } = await trace(admin, '--raw', '--save', 'saved.jsonl');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(`${odd}\n${LINES.join('\n')}\n`);
    const saved = join(folder.path, 'saved.jsonl');
    expect(await readFile(saved, 'utf8')).toBe(stdout);
    expect((await stat(saved)).mode & 0o777).toBe(0o600);
  });

  test('`proxy trace | head -1` ends without an error', async () => {
    await using admin = await fakeAdmin({
      '/debug/trace': (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': ready\n\n');
        const timer = setInterval(() => response.write(`data: ${LINES[0]}\n\n`), 5);
        response.on('close', () => clearInterval(timer));
      },
    });
    const child = spawn(
      '/bin/sh',
      [
        '-c',
        `{ "${process.execPath}" "${AGCTL}" proxy trace --admin ${admin.address} --raw; echo "code $?" >&2; } | head -1`,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (text) => (stdout += text));
    child.stderr.on('data', (text) => (stderr += text));
    await once(child, 'close');
    expect([stdout, stderr]).toEqual([`${LINES[0]}\n`, 'code 0\n']);
  });

  test('trace exits with 130 on Ctrl-C', async () => {
    await using admin = await fakeAdmin({
      '/debug/trace': (response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': ready\n\n'),
    });
    const child = spawn(process.execPath, [AGCTL, 'proxy', 'trace', '--admin', admin.address], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stderr = '';
    child.stderr.on('data', (text) => (stderr += text));
    await until(() => stderr.includes('waiting'));
    child.kill('SIGINT');
    expect(await once(child, 'close')).toEqual([130, null]);
  });
});

describe('trace filters', () => {
  test.each(['--match', '--expression'])('trace %s is sent to the gateway', async (option) => {
    await using admin = await traced(frames(DENIED));
    await trace(admin, option, 'request.path == "/a b+c"');
    expect(new URLSearchParams(admin.asked[0]?.url.split('?')[1]).get('expression')).toBe(
      'request.path == "/a b+c"',
    );
  });

  test.each(['--match', '--expression'])('an empty trace %s matches every request', async (option) => {
    await using admin = await traced(frames(DENIED));
    expect(await trace(admin, option, '')).toMatchObject({ code: 0 });
    expect(admin.asked[0]?.url).toBe('/debug/trace');
    await writeFile(join(folder.path, 'one.jsonl'), LINES.join('\n'));
    const args = ['proxy', 'trace', '--file', 'one.jsonl', option, ''];
    expect(await cli(args, { cwd: folder.path })).toMatchObject({ code: 0, stdout: TEXT });
  });

  test("a trace expression that the gateway rejects is exit code 2 with the gateway's message", async () => {
    await using admin = await fakeAdmin({
      '/debug/trace': says('invalid expression: unknown variable `reqest`\n', 'text/plain', 400),
    });
    expect(await trace(admin, '--match', 'reqest.path')).toMatchObject({
      code: 2,
      stderr: 'error: invalid expression: unknown variable `reqest`\n',
    });
  });

  test('trace --count traces that many requests one after another', async () => {
    await using admin = await traced(frames(DENIED));
    const { code, stdout } = await trace(admin, '--count', '3', '--raw');
    expect([code, stdout.trim().split('\n').length, admin.asked.length]).toEqual([0, 3 * LINES.length, 3]);
  });

  test.each([
    ['error', 1],
    ['warn', 1],
    ['deny', 1],
    ['4xx', 1],
    ['5xx,deny', 1],
    ['5xx', 0],
    ['cel-error,no-route', 0],
  ])('trace --fail-on %s is exit code %i', async (conditions, expected) => {
    await using admin = await traced(frames(DENIED));
    expect((await trace(admin, '--fail-on', conditions)).code).toBe(expected);
  });

  test.each([
    ['noCatalog', 0],
    ['missing', 1],
  ])(
    'trace --fail-on warn for a successful call whose price is %s is exit code %i',
    async (status, expected) => {
      const events = [
        { eventEnd: 0, severity: 'info', message: { type: 'requestStarted' } },
        { eventEnd: 9, severity: 'info', message: { type: 'requestFinished', status: 200, error: null } },
        {
          eventEnd: 9,
          severity: 'warn',
          message: { type: 'policyEvent', kind: 'llm_cost', details: { status } },
        },
      ];
      await using admin = await traced(frames(events));
      expect((await trace(admin, '--fail-on', 'warn')).code).toBe(expected);
      // The screen first shows the end of the request or its error.
      const { steps } = events.reduce((model: TraceModel, event) => addEvent(model, event), EMPTY_TRACE);
      expect(steps[stepToShow(steps)]?.message.type).toBe(expected === 0 ? 'requestFinished' : 'policyEvent');
    },
  );
});

describe('trace with its own request', () => {
  const OWN = ['-X', 'PUT', '-H', 'x-a: 1', '-d', '@body.json', '-s'];

  test('trace sends its own request when the gateway is ready, to its URL or to a port with its host, and prints the response', async () => {
    await writeFile(join(folder.path, 'body.json'), '{"a":\n1}\n');
    let isArmed = false;
    const seen: unknown[] = [];
    await using upstream = await httpUpstream((_, response, { method, target, headers, body }) => {
      seen.push([isArmed, method, target, headers['host'], headers['x-a'], headers['content-type'], body]);
      response.writeHead(201, { 'content-type': 'text/plain' }).end('made\u001b[2J');
    });
    await using admin = await fakeAdmin({
      '/debug/trace': (response) => {
        isArmed = true;
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': ready\n\n');
        void until(() => seen.length % 2 === 1).then(() => response.end(frames(DENIED)));
      },
    });
    const port = upstream.address.split(':')[1] as string;
    const { code, stdout, stderr } = await trace(admin, '--', `http://127.0.0.1:${port}/a?b=1`, ...OWN);
    expect([code, stdout, stderr]).toEqual([0, TEXT, 'reply 201 Created  text/plain\n  made\\u{1b}[2J\n']);
    seen.push('second');
    await trace(admin, '--port', port, '--', 'http://shop.example/a', ...OWN);
    expect(seen.filter(Array.isArray)).toEqual([
      [true, 'PUT', '/a?b=1', `127.0.0.1:${port}`, '1', 'application/json', '{"a":1}'],
      [true, 'PUT', '/a', 'shop.example', '1', 'application/json', '{"a":1}'],
    ]);
  });

  test('a trace prints the response to its own request also if it arrives after the last event', async () => {
    const traceEnded = Promise.withResolvers<void>();
    await using upstream = await httpUpstream((_, response) => {
      void traceEnded.promise.then(() => setTimeout(() => response.end('late'), 100));
    });
    await using admin = await fakeAdmin({
      '/debug/trace': (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': ready\n\n');
        response.end(frames(DENIED)).once('close', traceEnded.resolve);
      },
    });
    expect(await trace(admin, '--', `http://${upstream.address}/`)).toMatchObject({
      code: 0,
      stdout: TEXT,
      stderr: expect.stringContaining('reply 200 OK'),
    });
  });

  test('a trace request that cannot be sent or that another gateway answers is exit code 3', async () => {
    await using admin = await fakeAdmin({
      '/debug/trace': (response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': ready\n\n'),
    });
    await using upstream = await httpUpstream((_, response) => response.end('x'));
    expect(await trace(admin, '--', 'http://127.0.0.1:1/')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('the request could not be sent to 127.0.0.1:1: nothing listens there'),
    });
    expect(await trace(admin, '--', `http://${upstream.address}/`)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(`was answered with 200 OK, but ${admin.address} did not trace it`),
    });
  });

  test.each([
    [['--', '-d', 'x'], 'expected a URL after --'],
    [['--', 'http://a', 'http://b'], 'there are two URLs'],
    [['--', 'ftp://a'], 'ftp://a is not an http:// or https:// URL'],
    [
      ['--', 'http://a', '--heder', 'a: b'],
      '--heder is not an option for the request; did you mean --header?',
    ],
    [['--', 'http://a', '-H', 'a\u001b'], '-H "a\\u001b" is not a header'],
    [['--', 'http://a', '-H', 'a: b\u0007'], 'is not a header'],
    [['--', 'http://a', '-d'], '-d requires a value'],
    [['--', 'http://a', '-d', '@none'], 'cannot read none for the body: ENOENT'],
    [['--port', '3000'], '--port requires a request URL after --'],
    [['--port', 'x', '--', 'http://a'], 'invalid --port x'],
    [['gateway/one'], 'gateway/one is a Kubernetes resource, which is not supported'],
    [['--count', '0'], 'invalid --count 0'],
    [['--fail-on', 'eror'], 'unknown condition "eror"; did you mean error?'],
    [['--match', 'a', '--expression', 'b'], '--match and --expression are the same option'],
    [['--match', 'a ==='], 'invalid expression: '],
    [['--expression', ')\u001b'], 'invalid expression: '],
    [['--timeout', 'x'], '--timeout x is not a duration'],
    [['--save', '/no/such/x'], 'cannot write /no/such/x: ENOENT'],
  ])('trace with %j is exit code 2', async (args, message) => {
    const { code, stderr } = await cli(['proxy', 'trace', '--local', ...args], { cwd: '/' });
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe('trace failures', () => {
  const only = DENIED.slice(0, 3);
  test.each<[string, (string | Buffer)[], string]>([
    ['no events', [': ready\n\n'], 'ended the trace before a request arrived'],
    ['nothing at all', [], 'ended the trace before a request arrived'],
    [
      'an end in the middle',
      [frames(only)],
      'ended the trace after 3 events, before the request was complete',
    ],
    [
      'half a line',
      [frames(only), 'data: {"eventEnd":1,"mess'],
      'has an event that is not JSON, or is incomplete',
    ],
    ['no JSON', [': ready\n\ndata: hello\n\n'], 'has an event that is not JSON'],
    [
      'invalid UTF-8',
      [': ready\n\ndata: ', Buffer.from([0xff, 0xfe, 0x22]), '\n\n'],
      'has an event that is not JSON',
    ],
  ])('trace fails with exit code 3: %s', async (_, pieces, message) => {
    await using admin = await traced(...pieces);
    const { code, stderr } = await trace(admin);
    expect([code, stderr]).toEqual([3, expect.stringContaining(message)]);
  });

  test('trace reports a broken connection and a server that is not a gateway', async () => {
    await using breaks = await fakeAdmin({
      '/debug/trace': (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frames(only));
        setTimeout(() => response.destroy(), 50);
      },
    });
    const { code, stdout, stderr } = await trace(breaks);
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining(`${breaks.address} ended the trace after 3 events`),
    ]);
    expect(stdout).toContain('selected gateway/edge/default/tools');
    await using page = await fakeAdmin({ '/debug/trace': says('<html>', 'text/html') });
    expect(await trace(page)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('its /debug/trace is not an event stream'),
    });
  });

  test('trace without a request before the timeout is exit code 3', async () => {
    await using admin = await fakeAdmin({
      '/debug/trace': (response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': ready\n\n'),
    });
    expect(await trace(admin, '--timeout', '50ms')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('no request within 0.05 s'),
    });
  });

  test.each([
    ['empty', '', 'contains no trace'],
    ['prose', 'hello\n', 'contains no trace'],
    ['half', '{"a":1', 'has an event that is not JSON, or is incomplete'],
  ])('a saved trace that is %s is exit code 2', async (name, text, message) => {
    await writeFile(join(folder.path, name), text);
    expect(await cli(['proxy', 'trace', '--file', name], { cwd: folder.path })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    });
  });
});
