// A process that opens MCP sessions, each on a connection of its own, and calls a tool in all of them whenever it is told
// to. On bare sockets, because it shares the cores with what it measures.
import { connect } from 'node:net';
import { createHistogram } from 'node:perf_hooks';

const [url, count] = process.argv.slice(2);
const { hostname, port, pathname, host } = new URL(url);
const VERSION = '2025-06-18';

/** The head and body of a POST. */
function post(message, fields = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  const all = {
    host,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': Buffer.byteLength(body),
    ...fields,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/** Whether a text is a complete response: with a length, or in chunks. */
function isComplete(text) {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const head = text.slice(0, end);
  if (/^transfer-encoding: chunked/im.test(head)) return text.endsWith('\r\n0\r\n\r\n');
  return text.length >= end + 4 + Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
}

/** One session on one connection. */
class Session {
  id = '';
  #socket = connect(Number(port), hostname).setNoDelay(true).setEncoding('latin1');
  #text = '';
  #answered = () => undefined;
  #fields = {};

  constructor() {
    this.#socket.on('error', fail).on('close', () => fail(new Error('a connection was closed')));
    this.#socket.on('data', (text) => {
      this.#text += text;
      if (!isComplete(this.#text)) return;
      const whole = this.#text;
      this.#text = '';
      this.#answered(whole);
    });
  }

  async open() {
    const clientInfo = { name: 'bench', version: '1.0.0' };
    const params = { protocolVersion: VERSION, capabilities: {}, clientInfo };
    const opened = await this.#send(post({ id: 0, method: 'initialize', params }));
    this.id = /^mcp-session-id: (.*)\r$/im.exec(opened)?.[1] ?? fail(new Error(opened));
    this.#fields = { 'mcp-session-id': this.id, 'mcp-protocol-version': VERSION };
    await this.#send(post({ method: 'notifications/initialized' }, this.#fields));
    return this;
  }

  /** Calls the tool, one call after the other, until a time. */
  async run(until, latency) {
    let calls = 0;
    const params = { name: 'echo', arguments: { text: 'hello' } };
    const call = post({ id: 1, method: 'tools/call', params }, this.#fields);
    for (let now = performance.now(); now < until; ) {
      const answer = await this.#send(call);
      if (!answer.includes('"result"')) fail(new Error(answer));
      const then = performance.now();
      latency.record(Math.max(1, Math.round((then - now) * 1000)));
      now = then;
      calls += 1;
    }
    return calls;
  }

  #send(request) {
    return new Promise((resolve) => {
      this.#answered = resolve;
      this.#socket.write(request);
    });
  }
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

const sessions = await Promise.all(Array.from({ length: Number(count) }, () => new Session().open()));
const workers = {};
for (const { id } of sessions) {
  // The number of the worker is at the end of the id.
  const worker = /\.(\d+)$/.exec(id)?.[1] ?? 'only';
  workers[worker] = (workers[worker] ?? 0) + 1;
}
process.on('message', async ({ seconds }) => {
  const latency = createHistogram();
  const started = performance.now();
  const calls = await Promise.all(sessions.map((each) => each.run(started + seconds * 1000, latency)));
  const completed = calls.reduce((sum, each) => sum + each, 0);
  const rate = completed / ((performance.now() - started) / 1000);
  process.send({ completed, rate, p99: latency.percentile(99) });
});
process.on('disconnect', () => process.exit(0));
process.send({ workers });
