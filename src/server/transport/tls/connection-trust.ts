import type { Pool } from 'undici';
import { membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { CallMeter } from '../../kernel/observer.ts';

/**
 * Whether connections to an upstream may be used for a second request. undici closes a connection on which bytes arrive
 * that no request asked for. If the next request has been sent by then, they pass for its response: a client gets what was
 * meant for another one. So all connections to an upstream that does so are given up, and if it does so again, it gets a
 * connection per request (decision 0071).
 */
export class ConnectionTrust {
  readonly #address: string;
  readonly #meter: CallMeter | undefined;
  readonly #log: Log | undefined;
  /** From `performance.now()`: until when another such event has consequences, and until when connections are used once. */
  #watchedUntil = 0;
  #lostUntil = 0;

  constructor(address: string, meter: CallMeter | undefined, log: Log | undefined) {
    this.#address = address;
    this.#meter = meter;
    this.#log = log;
  }

  /** Whether a connection must not be used again. */
  get isLost(): boolean {
    return this.#lostUntil > 0 && performance.now() < this.#lostUntil;
  }

  /** Calls `lost` when a connection of the pool has received such bytes: its other connections are not to be used again. */
  watch(pool: Pool, lost: () => void): void {
    pool.on('disconnect', (_origin, _targets, error) => {
      if (!isUnsolicited(error)) return;
      this.#meter?.unsolicited();
      const now = performance.now();
      const isAgain = now < this.#watchedUntil;
      if (isAgain && !this.isLost)
        this.#log?.warn(
          'proxy::upstream',
          'an upstream has repeatedly sent bytes that no request asked for: its connections are used once',
          { upstream: this.#address },
        );
      this.#watchedUntil = now + LIMITS.upstreamDistrust;
      if (isAgain) this.#lostUntil = this.#watchedUntil;
      lost();
    });
  }
}

/** undici's error for a response that begins while no request is open. */
function isUnsolicited(error: Error): boolean {
  return membersOf(error)['code'] === 'UND_ERR_SOCKET' && error.message === 'bad response';
}
