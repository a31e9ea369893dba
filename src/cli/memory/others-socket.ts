import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { httpTransport, type Transport } from '../../adapter/backend/transport.ts';
import type { SearchKind } from '../../adapter/tool.ts';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { membersOf, numberIn, parseJson } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { makeFolder } from '../../core/make-folder.ts';

/** What the process that owns a memory tells others. */
interface Owner {
  readonly pid: number;
  /** `sharedSettings` */
  readonly settings: Readonly<Record<string, string>>;
  readonly searchKind: SearchKind;
}

/** The path that says who owns the memory. */
const OWNER = '/owner';
const PREFIX = '/api/memory';
/** How long an owner may take to say so: one that is stopped never does; ms. */
const OWNER_TIMEOUT = 2_000;
/** Settings that a process may leave to the owner: without them it only reads no folder itself. */
const OPTIONAL: readonly string[] = ['--docs', '--site-base'];

/** In a folder of its own, whose mode also protects the socket before it has its mode. */
function socketIn(dataDir: string): { readonly folder: string; readonly path: string } {
  const folder = join(dataDir, 'socket');
  return { folder, path: join(folder, 'memory.sock') };
}

/**
 * Serves the REST interface on a Unix socket in the folder of the memory, until `app` is closed. Call it while this process owns the
 * store, and close `app` before the store. Where sockets are not possible, as on some shared folders, others are refused as before.
 *
 * @param key which requests get: who may open the socket may read the files too
 */
export async function listenForOthers(
  app: FastifyInstance,
  dataDir: string,
  owner: Owner,
  key: string | undefined,
  log: Log,
): Promise<void> {
  const { folder, path } = socketIn(dataDir);
  const server = createServer((request, response) => {
    if (request.url === `${PREFIX}${OWNER}`) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(owner));
      return;
    }
    if (key !== undefined) request.headers.authorization = `Bearer ${key}`;
    app.routing(request, response);
  });
  server.requestTimeout = LIMITS.requestTimeout;
  let closed: Promise<void> | undefined;
  // No new requests from then on: others wait until the store is free.
  app.addHook('preClose', async () => {
    closed = new Promise((resolve) => server.close(() => resolve()));
  });
  app.addHook('onClose', async () => {
    const cut = setTimeout(() => server.closeAllConnections(), LIMITS.drain);
    await closed;
    clearTimeout(cut);
  });
  await app.ready();
  try {
    makeFolder(folder, 0o700);
    chmodSync(folder, 0o700);
    // The socket of an owner that was killed.
    rmSync(path, { force: true });
    server.listen(path);
    await once(server, 'listening');
    chmodSync(path, 0o600);
  } catch (error) {
    server.close();
    log.info('memory', 'no other process can use this memory meanwhile', {
      socket: path,
      problem: messageOf(error),
    });
  }
}

/** A connection to the process that owns a memory. */
export interface Joined {
  readonly pid: string;
  readonly transport: Transport;
  readonly searchKind: SearchKind;
}

/**
 * Connects to the process that owns the memory in a folder; undefined if none answers.
 *
 * @throws CommandError if that process has other settings
 */
export async function joinOwner(
  dataDir: string,
  settings: Readonly<Record<string, string>>,
): Promise<Joined | undefined> {
  const { path } = socketIn(dataDir);
  const transport = httpTransport(new URL(`http://localhost${PREFIX}`), path);
  const owner = await transport
    .send({
      method: 'GET',
      path: OWNER,
      headers: {},
      body: undefined,
      signal: AbortSignal.timeout(OWNER_TIMEOUT),
    })
    .then(({ text }) => membersOf(parseJson(text)))
    .catch(() => undefined);
  if (owner === undefined) {
    await transport.close();
    return undefined;
  }
  const pid = String(numberIn(owner['pid']) ?? '(unknown)');
  const theirs = membersOf(owner['settings']);
  const names = [...new Set([...Object.keys(settings), ...Object.keys(theirs)])].filter(
    (name) => settings[name] !== theirs[name] && !(settings[name] === undefined && OPTIONAL.includes(name)),
  );
  if (names.length > 0)
    throw new CommandError(
      'not_ok',
      `the memory in ${dataDir} is in use by process ${pid}, which has another value of ${names.join(', ')}`,
      'start both with the same settings, or give this one a memory of its own with --data',
    );
  const searchKind = owner['searchKind'];
  return {
    pid,
    transport,
    searchKind: searchKind === 'words' || searchKind === 'meaning' ? searchKind : 'unknown',
  };
}
