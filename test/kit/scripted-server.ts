import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Json } from './mcp.ts';
import { type Answers, textsFor } from './scripted-answers.ts';

/** An MCP server whose answers a test writes. `target` is its entry in `targets[]`. */
export interface ScriptedServer extends AsyncDisposable {
  readonly target: { readonly name: string };
}

/** The same answers over each transport between the gateway and a server. */
export const TRANSPORTS: readonly [
  name: string,
  start: (answers: Answers, name?: string) => Promise<ScriptedServer>,
][] = [
  ['stdio', (answers, name = 'a') => Promise.resolve(overStdio(answers, name))],
  ['HTTP with JSON', (answers, name = 'a') => overHttp(answers, name, 'json')],
  ['HTTP with an event stream', (answers, name = 'a') => overHttp(answers, name, 'events')],
  ['HTTP+SSE', (answers, name = 'a') => overHttp(answers, name, 'sse')],
];

const CHILD = fileURLToPath(new URL('./scripted-answers.ts', import.meta.url));

export function overStdio(
  answers: Answers,
  name = 'a',
): ScriptedServer & { readonly target: { readonly name: string; readonly stdio: object } } {
  // The gateway hands on variables that it knows, and no others.
  const { NODE_COMPILE_CACHE } = process.env;
  const env = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
  return {
    target: Object.assign(
      { name },
      { stdio: { cmd: process.execPath, args: [CHILD, JSON.stringify(answers)], env } },
    ),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** `format`: JSON bodies or event streams of Streamable HTTP, or the HTTP+SSE transport of 2024-11-05. */
export async function overHttp(
  answers: Answers,
  name = 'a',
  format: 'json' | 'events' | 'sse' = 'json',
): Promise<ScriptedServer & { readonly requests: readonly Json[] }> {
  const requests: Json[] = [];
  let stream: ServerResponse | undefined;
  const events = { 'content-type': 'text/event-stream' };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method === 'GET' && format === 'sse') {
      stream = response.writeHead(200, events);
      stream.write('event: endpoint\ndata: /message\n\n');
      return;
    }
    if (request.method !== 'POST') return void response.writeHead(405).end();
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const message = JSON.parse(body);
    requests.push(message);
    const texts = textsFor(answers, message);
    if (format === 'sse') {
      response.writeHead(202).end();
      for (const text of texts) stream?.write(`data: ${text}\n\n`);
    } else if (texts.length === 0) response.writeHead(202).end();
    else if (format === 'json')
      response.writeHead(200, { 'content-type': 'application/json' }).end(texts.join('\n'));
    else response.writeHead(200, events).end(texts.map((text) => `data: ${text}\n\n`).join(''));
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  return {
    target: Object.assign({ name }, format === 'sse' ? { sse: { host } } : { mcp: { host } }),
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
