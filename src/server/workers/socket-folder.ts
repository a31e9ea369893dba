import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { makeFolder } from '../../core/make-folder.ts';

/** Bytes of a path of a Unix socket, without its terminator (macOS; Linux has four more). */
const SOCKET_PATH = 103;
/** Room for the names of sockets: number and start of a worker, and port. */
const SOCKET_NAME = 16;

/** The folder of the workers' Unix sockets. Only the user of this process may enter it. */
export class SocketFolder {
  readonly #path: string;

  /** Creates a folder below TMPDIR. @throws Error if that fails, or if paths in it would be too long for a socket */
  constructor() {
    const parent = tmpdir();
    try {
      this.#path = mkdtempSync(join(parent, 'agctl-'));
    } catch (error) {
      throw new Error(`workers need a folder for Unix sockets: ${messageOf(error)}`);
    }
    if (Buffer.byteLength(this.#path) + SOCKET_NAME <= SOCKET_PATH) return;
    this.remove();
    throw new Error(`the path of the folder for Unix sockets is too long: ${parent}`);
  }

  /** Returns the prefix of the sockets of a worker, after creating the folder again if something has removed it. */
  prefix(worker: number, start: number): string {
    makeFolder(this.#path, 0o700);
    return join(this.#path, `${worker}.${start}.`);
  }

  /** Removes sockets that a worker has not closed. */
  removeSockets(prefix: string): void {
    if (!existsSync(this.#path)) return;
    for (const name of readdirSync(this.#path)) {
      const socket = join(this.#path, name);
      if (socket.startsWith(prefix)) rmSync(socket, { force: true });
    }
  }

  remove(): void {
    rmSync(this.#path, { recursive: true, force: true });
  }
}
