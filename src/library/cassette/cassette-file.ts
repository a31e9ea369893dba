import { appendFileSync, closeSync, existsSync, fchmodSync, ftruncateSync, openSync, rmSync } from 'node:fs';
import { VERSION } from '../../core/version.ts';
import { FORMAT, type Head, type RecordedExchange } from './format.ts';

/** A cassette that is being written: each line at once and complete, readable by this user only. */
export class CassetteFile {
  readonly path: string;
  readonly #descriptor: number;
  readonly #isNew: boolean;
  #state: 'opened' | 'begun' | 'closed' = 'opened';
  #gateways: ReadonlySet<string> = new Set();
  /** Exchanges that were written; undefined if the recording has not begun. */
  count: number | undefined;

  /** An earlier recording stays until this one begins. @throws Node's error, `EEXIST` if there is one and it may not be replaced */
  constructor(path: string, replace: boolean) {
    this.path = path;
    this.#isNew = !existsSync(path);
    this.#descriptor = openSync(path, replace ? 'a' : 'ax', 0o600);
  }

  begin(gateways: Head['gateways']): void {
    this.#state = 'begun';
    this.count = 0;
    this.#gateways = new Set(gateways.map(({ name }) => name));
    // A file that is replaced has its own mode.
    fchmodSync(this.#descriptor, 0o600);
    ftruncateSync(this.#descriptor);
    this.#write({
      cassette: FORMAT,
      agctl: VERSION,
      time: new Date().toISOString(),
      gateways,
    } satisfies Head);
  }

  /** @throws an error if the gateway of the exchange was added by a reload, or the file cannot be written */
  add(exchange: RecordedExchange): void {
    if (this.#state !== 'begun') return;
    if (!this.#gateways.has(exchange.gateway))
      throw new Error(`the gateway \`${exchange.gateway}\` was added while it was recorded`);
    this.#write(exchange);
    this.count = (this.count ?? 0) + 1;
  }

  /** Closes the file. Removes it if the recording has not begun and it is new. */
  close(): void {
    if (this.#state === 'closed') return;
    closeSync(this.#descriptor);
    if (this.#state === 'opened' && this.#isNew) rmSync(this.path, { force: true });
    this.#state = 'closed';
  }

  #write(line: object): void {
    appendFileSync(this.#descriptor, `${JSON.stringify(line)}\n`);
  }
}
