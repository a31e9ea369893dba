import {
  appendFileSync,
  closeSync,
  existsSync,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
} from 'node:fs';
import { VERSION } from '../../core/version.ts';
import { FORMAT, type Head, type RecordedExchange } from './format.ts';

/** A cassette that is being written: each line at once and complete, readable by this user only. */
export class CassetteFile {
  readonly path: string;
  readonly #descriptor: number;
  readonly #isNew: boolean;
  #state: 'opened' | 'begun' | 'closed' = 'opened';
  /** The first line, and how many bytes were written. */
  #head = Buffer.alloc(0);
  #size = 0;
  #gateways: ReadonlySet<string> = new Set();
  /** Exchanges that were written; undefined if the recording has not begun. */
  count: number | undefined;

  /** An earlier recording stays until this one begins. @throws Node's error, `EEXIST` if there is one and it may not be replaced */
  constructor(path: string, replace: boolean) {
    this.path = path;
    this.#isNew = !existsSync(path);
    this.#descriptor = openSync(path, replace ? 'a+' : 'ax+', 0o600);
  }

  begin(gateways: Head['gateways']): void {
    this.#state = 'begun';
    this.count = 0;
    this.#gateways = new Set(gateways.map(({ name }) => name));
    // A file that is replaced has its own mode.
    fchmodSync(this.#descriptor, 0o600);
    ftruncateSync(this.#descriptor);
    const time = new Date().toISOString();
    this.#head = lineOf({ cassette: FORMAT, agctl: VERSION, time, gateways } satisfies Head);
    this.#append(this.#head);
  }

  /** @throws an error if the gateway of the exchange was added by a reload, something else has changed the file, or it cannot be written */
  add(exchange: RecordedExchange): void {
    if (this.#state !== 'begun') return;
    if (!this.#gateways.has(exchange.gateway))
      throw new Error(`the gateway \`${exchange.gateway}\` was added while it was recorded`);
    // A lock would outlive a process that is killed.
    if (!this.#isOwn()) throw new Error('another recording, or something else, has changed it');
    this.#append(lineOf(exchange));
    this.count = (this.count ?? 0) + 1;
  }

  /** Closes the file. Removes it if the recording has not begun and it is new. */
  close(): void {
    if (this.#state === 'closed') return;
    closeSync(this.#descriptor);
    if (this.#state === 'opened' && this.#isNew) rmSync(this.path, { force: true });
    this.#state = 'closed';
  }

  /** Another recording has another first line, or has added others. */
  #isOwn(): boolean {
    const first = Buffer.alloc(this.#head.byteLength);
    readSync(this.#descriptor, first, 0, first.byteLength, 0);
    return first.equals(this.#head) && fstatSync(this.#descriptor).size === this.#size;
  }

  #append(line: Uint8Array): void {
    appendFileSync(this.#descriptor, line);
    this.#size += line.byteLength;
  }
}

const lineOf = (line: object): Buffer<ArrayBuffer> => Buffer.from(`${JSON.stringify(line)}\n`);
