import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net';
import type { Json } from '../../kit/mcp.ts';
import { pieces, type Random } from '../mutate.ts';
import { type Era, response, resultOf, withId } from './answers.ts';

/** What a target does with one request: JSON-RPC messages as text, the last of them usually the response. */
export interface Played {
  readonly texts: readonly string[];
  /** Status and headers, where the transport has them. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Cuts what is sent at random places. */
  readonly random?: Random;
}

export type Transport = 'json' | 'events' | 'stdio' | 'sse';

/** One fake target, which answers well unless the running trial wants something else. */
export interface Peer {
  /** Member of `targets` in the configuration. */
  readonly target: object;
  /** Undefined: answers well. */
  play: ((message: Json) => Played | undefined) | undefined;
}

export interface Peers extends AsyncDisposable {
  add(name: string, transport: Transport, era: Era): Peer;
}

interface Entry extends Peer {
  readonly era: Era;
  readonly transport: Transport;
  /** The event streams of the transport HTTP+SSE, one for each session. */
  readonly streams: Map<string, ServerResponse>;
  opened: number;
}

/** Fake targets of every transport, all in this process: a stdio target is a shell that copies bytes to a socket. */
export async function mcpPeers(): Promise<Peers> {
  const entries: Entry[] = [];
  const http = createServer((request, reply) => {
    serve(entries, request, reply).catch(() => reply.destroy());
  });
  const sockets = new Set<Socket>();
  const stdio = createSocketServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    serveLines(entries, socket);
  });
  await Promise.all(
    [http, stdio].map((server) => new Promise<void>((done) => server.listen(0, '127.0.0.1', done))),
  );
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const { port } = stdio.address() as AddressInfo;
  return {
    add(name, transport, era) {
      const at = entries.length;
      const entry = {
        target: targetOf(name, transport, origin, port, at),
        play: undefined,
        era,
        transport,
        streams: new Map(),
        opened: 0,
      };
      entries.push(entry);
      return entry;
    },
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections();
      for (const socket of sockets) socket.destroy();
      await Promise.all([http, stdio].map((server) => new Promise((done) => server.close(done))));
    },
  };
}

function targetOf(name: string, transport: Transport, origin: string, port: number, at: number): object {
  if (transport === 'sse') return { name, sse: { host: `${origin}/${at}` } };
  if (transport !== 'stdio') return { name, mcp: { host: `${origin}/${at}` } };
  // Both directions of a socket that bash opens; far cheaper to start than a program. Its input is a socket, for which bash
  // would read ~/.bashrc (bash(1), "INVOCATION": the remote shell daemon).
  const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf '${at}\\n' >&3; cat <&3 & exec cat >&3`;
  return { name, stdio: { cmd: 'bash', args: ['--norc', '-c', script] } };
}

const NO_METHOD = { error: { code: -32601, message: 'no such method' } };

/** What a good server answers; undefined if the message needs no answer. */
function answer(entry: Entry, message: Json): Played | undefined {
  if (message?.method === undefined || message.id === undefined) return undefined;
  const played = entry.play?.(message);
  if (played !== undefined) return { ...played, texts: played.texts.map((text) => withId(text, message.id)) };
  const result = resultOf(entry.era, message);
  const good = response(result === undefined ? NO_METHOD : { result });
  return { texts: [withId(JSON.stringify(good), message.id)] };
}

/** The last write to each stream: messages in pieces must not get into each other. */
const writes = new WeakMap<NodeJS.WritableStream, Promise<void>>();

function write(stream: NodeJS.WritableStream, text: string, random: Random | undefined): Promise<void> {
  const written = (writes.get(stream) ?? Promise.resolve()).then(() => writePieces(stream, text, random));
  writes.set(stream, written);
  return written;
}

async function writePieces(
  stream: NodeJS.WritableStream,
  text: string,
  random: Random | undefined,
): Promise<void> {
  const bytes = Buffer.from(text);
  const cut = random === undefined ? [bytes] : pieces(random, bytes);
  for (const [index, piece] of cut.entries()) {
    if (piece.length > 0) stream.write(piece);
    if (index < cut.length - 1) await new Promise(setImmediate);
  }
}

const asEvents = (texts: readonly string[], random: Random | undefined): string => {
  const end = random !== undefined && random(3) === 0 ? '\r\n' : '\n';
  return texts
    .map((text, index) => `id: ${index}${end}event: message${end}data: ${text}${end}${end}`)
    .join(random !== undefined && random(3) === 0 ? `: a comment${end}${end}` : '');
};

async function serve(
  entries: readonly Entry[],
  request: IncomingMessage,
  reply: ServerResponse,
): Promise<void> {
  const [, at = '', number] = (request.url ?? '').split('/');
  const entry = entries[Number(at)];
  if (entry === undefined) return void reply.writeHead(404).end();
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  if (entry.transport === 'sse') return legacy(entry, request, reply, text, at, number);
  if (request.method === 'DELETE') return void reply.writeHead(204).end();
  if (request.method !== 'POST') return void reply.writeHead(405).end();
  const message = JSON.parse(text) as Json;
  const played = answer(entry, message);
  if (played === undefined) return void reply.writeHead(202).end();
  const { texts, status = 200, headers = {}, random } = played;
  const session = message.method === 'initialize' ? { 'mcp-session-id': `s-${at}` } : {};
  if (entry.transport === 'json') {
    reply.writeHead(status, { 'content-type': 'application/json', ...session, ...headers });
    // A body of JSON has room for the response only.
    await write(reply, texts.at(-1) ?? '', random);
  } else {
    reply.writeHead(status, { 'content-type': 'text/event-stream', ...session, ...headers });
    await write(reply, asEvents(texts, random), random);
  }
  reply.end();
}

async function legacy(
  entry: Entry,
  request: IncomingMessage,
  reply: ServerResponse,
  text: string,
  at: string,
  number: string | undefined,
): Promise<void> {
  if (request.method === 'GET') {
    reply.writeHead(200, { 'content-type': 'text/event-stream' });
    reply.write(`event: endpoint\ndata: /${at}/${entry.opened}\n\n`);
    entry.streams.set(String(entry.opened), reply);
    entry.opened += 1;
    reply.on('close', () => {
      for (const [key, stream] of entry.streams) if (stream === reply) entry.streams.delete(key);
    });
    return;
  }
  const stream = entry.streams.get(number ?? '');
  if (stream === undefined) return void reply.writeHead(405).end();
  const played = answer(entry, JSON.parse(text));
  reply.writeHead(202).end();
  if (played !== undefined) await write(stream, asEvents(played.texts, played.random), played.random);
}

/** Lines of a child process: the first one names the target. */
function serveLines(entries: readonly Entry[], socket: Socket): void {
  let entry: Entry | undefined;
  let rest = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    rest += part;
    for (let end = rest.indexOf('\n'); end !== -1; end = rest.indexOf('\n')) {
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      if (entry === undefined) entry = entries[Number(line)];
      else {
        const { texts = [], random } = answer(entry, JSON.parse(line)) ?? {};
        const newline = random !== undefined && random(3) === 0 ? '\r\n' : '\n';
        void write(socket, texts.map((text) => `${text}${newline}`).join(''), random);
      }
    }
  });
}
