import { hash } from 'node:crypto';
import { detailOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { type Provider, SignInError, type Tokens } from './provider.ts';

/** Result of a renewal, as a JSON value: workers ask the process that has the state. */
export type Renewal =
  | { readonly tokens: Tokens }
  /** `isRefused`: the provider does not renew the session; otherwise it could not be asked. */
  | { readonly problem: string; readonly isRefused: boolean };

interface Entry {
  readonly result: Promise<Renewal>;
  /** From `performance.now()`; infinite while the provider is asked. */
  until: number;
}

/**
 * Renews sessions, each once: a page sends many requests with the same cookie, and a provider that rotates refresh tokens
 * takes a second use of one for theft, and ends the session (RFC 9700 §4.14.2). Requests that were sent before the browser
 * had the new cookie get the same result.
 */
export class Renewals {
  readonly #provider: Pick<Provider, 'refresh'>;
  /** By the hash of the refresh token, in the order of their beginning. */
  readonly #entries = new Map<string, Entry>();

  constructor(provider: Pick<Provider, 'refresh'>) {
    this.#provider = provider;
  }

  /** Number of renewals that are running or remembered. */
  get size(): number {
    return this.#entries.size;
  }

  /** Never rejects. */
  renew(refreshToken: string): Promise<Renewal> {
    const now = performance.now();
    for (const [id, { until }] of this.#entries) if (until <= now) this.#entries.delete(id);
    const id = hash('sha256', refreshToken, 'base64url');
    const known = this.#entries.get(id);
    if (known !== undefined) return known.result;
    if (this.#entries.size >= LIMITS.sessionRenewals) {
      const problem = `more than ${LIMITS.sessionRenewals} sessions are renewed at the same time`;
      return Promise.resolve({ problem, isRefused: false });
    }
    const entry: Entry = { result: this.#ask(refreshToken), until: Number.POSITIVE_INFINITY };
    this.#entries.set(id, entry);
    void entry.result.then((result) => {
      const lifetime = 'tokens' in result ? LIMITS.renewedSessionMemory : LIMITS.retryDelayMax;
      entry.until = performance.now() + lifetime;
    });
    return entry.result;
  }

  async #ask(refreshToken: string): Promise<Renewal> {
    try {
      return { tokens: await this.#provider.refresh(refreshToken) };
    } catch (error) {
      return { problem: detailOf(error), isRefused: error instanceof SignInError };
    }
  }
}
