import { LIMITS } from '../../../core/limits.ts';
import { noCredentials } from './no-credentials.ts';

export interface Token {
  readonly value: string;
  /** Unix time in ms. */
  readonly expiresAt: number;
}

/**
 * A token that is fetched when it is needed and shared by all calls until shortly before it expires. Rejects with the
 * `AppError` of `noCredentials`.
 */
export class TokenSource {
  readonly #fetch: () => Promise<Token>;
  readonly #places: string;
  #token: Token | undefined;
  #pending: Promise<Token> | undefined;

  /** `places` is where `fetch` looks for credentials, for the log. */
  constructor(fetch: () => Promise<Token>, places: string) {
    this.#fetch = fetch;
    this.#places = places;
  }

  async value(): Promise<string> {
    const token = this.#token;
    const left = token === undefined ? 0 : token.expiresAt - Date.now();
    if (token !== undefined && left > LIMITS.tokenRefreshBefore) return token.value;
    try {
      return (await this.#refreshed()).value;
    } catch (error) {
      // The old one is still valid: the next call tries again.
      if (token !== undefined && left > 0) return token.value;
      throw noCredentials(this.#places, error);
    }
  }

  #refreshed(): Promise<Token> {
    this.#pending ??= inTime(this.#fetch())
      .then(({ value, expiresAt }) => {
        // The libraries compute it from what a server has sent.
        const token = { value, expiresAt: Math.min(expiresAt, Date.now() + LIMITS.tokenLifetimeMax) };
        this.#token = token;
        return token;
      })
      .finally(() => {
        this.#pending = undefined;
      });
    return this.#pending;
  }
}

/** Rejects after `LIMITS.credentialTimeout`: the libraries wait for some metadata servers without a limit. */
export async function inTime<T>(result: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const why = new Error(`no answer within ${LIMITS.credentialTimeout / 1000} s`);
    timer = setTimeout(() => reject(why), LIMITS.credentialTimeout);
  });
  try {
    return await Promise.race([result, late]);
  } finally {
    clearTimeout(timer);
  }
}
