import { setTimeout as pause } from 'node:timers/promises';
import type { Transport } from '../../adapter/backend/transport.ts';
import type { SearchKind } from '../../adapter/tool.ts';
import { messageOf } from '../../core/errors.ts';
import { errorCode } from '../../core/foreign.ts';
import type { Log } from '../../core/log.ts';
import { MemoryInUseError } from './backend.ts';

/** A memory that this process owns, or a connection to the one that does. */
export interface MemoryEnd {
  readonly transport: Transport;
  readonly searchKind: SearchKind;
  close(): Promise<void>;
}

/** The ways to get one. */
export interface MemoryEnds {
  /** Connects to the owner; undefined if there is none. */
  join(): Promise<MemoryEnd | undefined>;
  /** Becomes the owner. @throws MemoryInUseError if there is one */
  own(): Promise<MemoryEnd>;
}

/**
 * How long an owner may take until it answers at its socket, or has closed its store; ms. 3 s were too few on a machine with a load of 30;
 * clients wait 60 s for a server that starts.
 */
const PATIENCE = 15_000;
const AGAIN = 50;

/** Connects to the owner of a memory, or becomes it. */
async function anyEnd({ join, own }: MemoryEnds): Promise<MemoryEnd> {
  const late = performance.now() + PATIENCE;
  for (;;) {
    const joined = await join();
    if (joined !== undefined) return joined;
    try {
      return await own();
    } catch (error) {
      if (!(error instanceof MemoryInUseError) || performance.now() > late) throw error;
    }
    await pause(AGAIN);
  }
}

/**
 * The memory of a folder, whichever process owns it. When the owner ends, however it does, this process or another one becomes the owner
 * with the next request. A request that was cut is repeated by its sender, which gives writes a key.
 */
export async function sharedMemory(ends: MemoryEnds, log: Log): Promise<MemoryEnd> {
  let end = await anyEnd(ends);
  let next: Promise<MemoryEnd> | undefined;
  let isClosed = false;
  const successor = (gone: MemoryEnd): Promise<MemoryEnd> => {
    // Others have found out before.
    if (gone !== end) return Promise.resolve(end);
    next ??= anyEnd(ends)
      .then(async (found) => {
        end = found;
        await gone.close();
        return found;
      })
      .catch((error: unknown) => {
        log.warn('memory', 'the process that had this memory has ended, and it cannot be opened here', {
          problem: messageOf(error),
        });
        throw error;
      })
      .finally(() => {
        next = undefined;
      });
    return next;
  };
  const { searchKind } = end;
  return {
    searchKind,
    transport: {
      get origin() {
        return end.transport.origin;
      },
      async send(request) {
        const asked = next === undefined ? end : await unlessAborted(next, request.signal);
        try {
          return await asked.transport.send(request);
        } catch (error) {
          if (!isGone(error) || isClosed) throw error;
          const found = await unlessAborted(successor(asked), request.signal).catch(() => undefined);
          request.signal.throwIfAborted();
          if (found === undefined) throw error;
          return found.transport.send(request);
        }
      },
      close: () => Promise.resolve(),
    },
    async close() {
      isClosed = true;
      await next?.catch(() => undefined);
      await end.close();
    },
  };
}

/** Nobody listens at the socket any more: the request has not arrived. */
function isGone(error: unknown): boolean {
  return ['ENOENT', 'ECONNREFUSED'].includes(errorCode(error));
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([promise, aborted]);
}
