// A stub MCP server on stdin and stdout that misbehaves on demand:
//   node chaos-child.mjs [--name=x] [--tools=a,b] [--prompts=a] [--resources=u,v] [--pages=n] [--endless]
//     [--exit=code] [--mute] [--silent] [--ignore-term] [--linger] [--refuse] [--revision=2024-11-05] [--mark=file]
//     [--needs=file] [--starts-with=file] [--lists-with=file] [--asks-first=count] [--definitions=file]
// Every tool it is asked to call exists; the ones in `actions` do what their name says, all others say their name.
import { spawn } from 'node:child_process';
import { appendFileSync, closeSync, existsSync, readFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values: flags } = parseArgs({
  options: {
    name: { type: 'string', default: 'chaos' },
    tools: { type: 'string', default: 'echo' },
    prompts: { type: 'string' },
    resources: { type: 'string' },
    pages: { type: 'string', default: '1' },
    endless: { type: 'boolean' },
    exit: { type: 'string' },
    // Answers nothing but `initialize`; with `silent`, not even that.
    mute: { type: 'boolean' },
    silent: { type: 'boolean' },
    'ignore-term': { type: 'boolean' },
    linger: { type: 'boolean' },
    refuse: { type: 'boolean' },
    revision: { type: 'string' },
    mark: { type: 'string' },
    // Exits with 5 as long as this file is missing.
    needs: { type: 'string' },
    // Answers `initialize` once this file is there.
    'starts-with': { type: 'string' },
    // The same for lists.
    'lists-with': { type: 'string' },
    // Asks for roots so many times once the client is initialized; each answer is a line in the file of `mark`.
    'asks-first': { type: 'string' },
    // Members of listed tools by name, as JSON, read for each list.
    definitions: { type: 'string' },
  },
});

/** Every line that arrived, as it arrived. */
const received = [];
/** Answers to requests of ours, by id. */
const asked = new Map();

// writeSync: a line is out before the process can be killed, and pieces stay pieces. A full pipe gives EAGAIN.
function write(bytes, fd = 1) {
  let rest = Buffer.from(bytes);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

const send = (message) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

if (flags.mark !== undefined) appendFileSync(flags.mark, `${process.pid}\n`);
if (flags.needs !== undefined && !existsSync(flags.needs)) process.exit(5);
if (flags.exit !== undefined) {
  write('first line\nthe last words\n', 2);
  process.exit(Number(flags.exit));
}
if (flags['ignore-term']) process.on('SIGTERM', () => undefined);
// Something to do after stdin has ended.
if (flags.linger) setInterval(() => undefined, 1000);

function ask(method, params) {
  const id = `ask-${asked.size + 1}`;
  return new Promise((resolve) => {
    asked.set(id, resolve);
    send({ id, method, ...(params && { params }) });
  });
}

const actions = {
  echo: ({ args }) => text(String(args.message ?? 'echo')),
  env: () => text(JSON.stringify(process.env)),
  pid: () => text(String(process.pid)),
  /** The tool fails; with `code`, the server refuses the call. */
  fail: ({ id, args }) => {
    if (args.code === undefined) return { ...text('the tool failed'), isError: true };
    send({ id, error: { code: args.code, message: String(args.message) } });
    return undefined;
  },
  cwd: () => text(process.cwd()),
  received: () => text(JSON.stringify(received)),
  hang: () => undefined,
  later: async ({ args }) => {
    await pause(args.ms);
    return text(String(args.message));
  },
  /** Answers once a file is there. */
  after: async ({ args }) => {
    while (!existsSync(args.file)) await pause(20);
    return text(String(args.message));
  },
  die: ({ args }) => {
    write(`${args.words ?? 'the last words'}\n`, 2);
    process.exit(args.code ?? 3);
  },
  'kill-self': () => process.kill(process.pid, 'SIGKILL'),
  /** Writes pieces (base64) with a pause between them, and answers only when asked to. */
  emit: async ({ args }) => {
    for (const piece of args.pieces) {
      write(Buffer.from(piece, 'base64'));
      await pause(20);
    }
    return args.silent ? undefined : text('emitted');
  },
  big: ({ args }) => text('x'.repeat(args.bytes)),
  keys: ({ args }) => ({
    content: [],
    structuredContent: Object.fromEntries(Array.from({ length: args.count }, (_, key) => [`k${key}`, 0])),
  }),
  stderr: ({ args }) => {
    for (let line = 0; line < args.lines; line += 1)
      write(`noise ${line} ${'.'.repeat(args.width ?? 10)}\n`, 2);
    return text('written');
  },
  'answer-and-exit': ({ id }) => {
    send({ id, result: text('the last answer') });
    process.exit(0);
  },
  'close-stdout': () => {
    // `process.stdout.destroy()` would leave the descriptor open.
    closeSync(1);
    return undefined;
  },
  /** A child of its own that ignores SIGTERM and holds our stdout. */
  grandchild: () => {
    const script = "process.on('SIGTERM', () => undefined); setInterval(() => undefined, 1000)";
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'inherit', 'ignore'] });
    return text(String(child.pid));
  },
  ask: async ({ args }) => {
    if (args.after !== undefined) await pause(args.after);
    const { result, error } = await ask(args.method ?? 'roots/list', args.params);
    return text(JSON.stringify(result ?? { error }));
  },
  /** Asks, and takes the question back. Ends when another question has been answered. */
  'ask-and-cancel': async ({ args }) => {
    const id = `ask-${asked.size + 1}`;
    void ask(args.method ?? 'roots/list', args.params);
    send({ method: 'notifications/cancelled', params: { requestId: id, reason: 'changed my mind' } });
    await ask('roots/list');
    return text('cancelled');
  },
  notify: ({ args }) => {
    for (let n = 0; n < (args.times ?? 1); n += 1) {
      send({ method: args.method, params: { ...args.params, ...(args.times && { n }) } });
    }
    return text('notified');
  },
  progress: async ({ args, meta }) => {
    for (let progress = 1; progress <= args.steps; progress += 1) {
      send({ method: 'notifications/progress', params: { progressToken: meta.progressToken, progress } });
      await pause(5);
    }
    return text('done');
  },
  give: ({ args }) => args.result,
  link: () => ({
    content: [
      { type: 'resource_link', uri: 'file:///linked', name: 'linked' },
      { type: 'resource', resource: { uri: 'file:///embedded', text: 'embedded' } },
      { type: 'text', text: 'file:///not-a-uri-member' },
    ],
  }),
};

/** Page `cursor` of a list: with --pages=2, `a` becomes `a` and `a-2`. */
function page(names, cursor) {
  const number = Number(cursor ?? 1);
  const last = flags.endless ? Number.POSITIVE_INFINITY : Number(flags.pages);
  const suffix = number === 1 ? '' : `-${number}`;
  return {
    items: names.map((name) => name + suffix),
    ...(number < last && { nextCursor: String(number + 1) }),
  };
}

const definitions = () =>
  flags.definitions === undefined ? {} : JSON.parse(readFileSync(flags.definitions, 'utf8'));

function listing(member, list, cursor, toItem) {
  const { items, ...rest } = page((list ?? '').split(',').filter(Boolean), cursor);
  return { [member]: items.map(toItem), ...rest };
}

const requests = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: flags.revision ?? protocolVersion,
    capabilities: {
      tools: { listChanged: true },
      ...(flags.prompts !== undefined && { prompts: {}, completions: {} }),
      ...(flags.resources !== undefined && { resources: { subscribe: true } }),
      logging: {},
    },
    serverInfo: { name: flags.name, version: '1' },
    instructions: `how to use ${flags.name}`,
  }),
  ping: () => ({}),
  'logging/setLevel': () => ({}),
  'tools/list': ({ cursor }) =>
    listing('tools', flags.tools, cursor, (name) => ({
      name,
      inputSchema: { type: 'object' },
      big: 1.0,
      ...definitions()[name],
    })),
  'prompts/list': ({ cursor }) => listing('prompts', flags.prompts, cursor, (name) => ({ name })),
  'prompts/get': ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `${flags.name} ${name}` } }],
  }),
  'resources/list': ({ cursor }) =>
    listing('resources', flags.resources, cursor, (uri) => ({ uri, name: uri })),
  'resources/templates/list': ({ cursor }) =>
    listing('resourceTemplates', flags.resources, cursor, (uri) => ({
      uriTemplate: `${uri}/{id}`,
      name: uri,
    })),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: `${flags.name} ${uri}` }] }),
  'resources/subscribe': ({ uri }) => {
    send({ method: 'notifications/resources/updated', params: { uri } });
    return {};
  },
  'resources/unsubscribe': () => ({}),
  'completion/complete': ({ ref }) => ({ completion: { values: [`${flags.name} ${ref.name ?? ref.uri}`] } }),
};

async function answer({ id, method, params = {} }) {
  if (flags.silent || (flags.mute && method !== 'initialize')) return;
  if (flags.refuse) return send({ id, error: { code: -32000, message: 'not today' } });
  if (method === 'tools/call') {
    const action = actions[params.name] ?? (() => text(`${flags.name} ${params.name}`));
    const result = await action({ id, args: params.arguments ?? {}, meta: params._meta ?? {} });
    if (result !== undefined) send({ id, result });
    return;
  }
  while (method === 'initialize' && flags['starts-with'] !== undefined && !existsSync(flags['starts-with']))
    await pause(20);
  const wanted = method.endsWith('/list') ? flags['lists-with'] : undefined;
  while (wanted !== undefined && !existsSync(wanted)) await pause(20);
  const handler = requests[method];
  if (handler === undefined) send({ id, error: { code: -32601, message: `no method ${method}` } });
  else send({ id, result: handler(params) });
}

function askFirst() {
  for (let count = 0; count < Number(flags['asks-first'] ?? 0); count += 1)
    void ask('roots/list').then((answer) => appendFileSync(flags.mark, `${JSON.stringify(answer)}\n`));
}

createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
  received.push(line);
  const message = JSON.parse(line);
  if (message.method === 'notifications/initialized') askFirst();
  if (message.method === undefined) asked.get(message.id)?.(message);
  else if (message.id !== undefined) void answer(message);
});
