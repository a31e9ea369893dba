import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { DocumentClient } from './document.ts';
import type { Provider } from './provider.ts';

/** Authorization-server metadata (RFC 8414 §2), as far as it was looked at. */
export type Metadata = Readonly<Record<string, unknown>>;

export interface ServerMetadataOptions {
  readonly issuer: string;
  readonly provider: Provider;
  /** Clients register whatever the provider says, because the gateway answers them itself. */
  readonly answersRegistration: boolean;
  readonly client: DocumentClient;
  readonly log: Log;
}

/** The provider's metadata, cached; a provider that does not answer serves what it said before. */
export class ServerMetadata {
  readonly #options: ServerMetadataOptions;
  #document: Metadata | undefined;
  #problem = '';
  /** Until then nothing is asked, and the last outcome stands: callers are anybody. */
  #restsUntil = 0;
  #reading: Promise<void> | undefined;

  constructor(options: ServerMetadataOptions) {
    this.#options = options;
  }

  /**
   * As clients of the gateway see it: as published, but for the registration endpoint, and for the issuer when the
   * gateway stands in for the provider. Rejects with `provider_failed`.
   */
  async read(issuer: string, registrationEndpoint: string): Promise<Metadata> {
    const document = await this.#original();
    const { provider, answersRegistration } = this.#options;
    const registers = answersRegistration || this.#registrationUrl(document) !== undefined;
    const own = registers ? { registration_endpoint: registrationEndpoint } : {};
    if (!provider.isFronted) return { ...document, ...own };
    // RFC 9207: the provider's `iss` in a callback would not be the issuer that we name here.
    const { authorization_response_iss_parameter_supported: _dropped, ...kept } = document;
    return { ...kept, issuer, ...own };
  }

  /** Where the provider registers clients, also while its metadata cannot be had; undefined when it does not. */
  async registrationUrl(): Promise<string | undefined> {
    return this.#registrationUrl(await this.#original().catch(() => ({})));
  }

  #registrationUrl({ registration_endpoint: endpoint }: Metadata): string | undefined {
    const { issuer, provider } = this.#options;
    // Only at the provider itself: its metadata must not send our requests elsewhere.
    if (typeof endpoint === 'string' && new URL(endpoint).origin === new URL(issuer).origin) return endpoint;
    return provider.registrationUrl(issuer);
  }

  async #original(): Promise<Metadata> {
    if (performance.now() >= this.#restsUntil) {
      this.#reading ??= this.#fetch().finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
    if (this.#document === undefined) throw new AppError('provider_failed', { detail: this.#problem });
    return this.#document;
  }

  async #fetch(): Promise<void> {
    const { provider, issuer, client, log } = this.#options;
    try {
      const { value } = await client.fetch(provider.metadataUrl(issuer), LIMITS.metadataBytes);
      this.#document = checkedMetadata(value, issuer);
      this.#restsUntil = performance.now() + LIMITS.serverMetadataLifetime;
    } catch (error) {
      this.#problem = messageOf(error);
      log.warn('auth', 'metadata of the identity provider could not be read', { problem: this.#problem });
      const rest = this.#document === undefined ? LIMITS.retryLast : LIMITS.keyRefetch;
      this.#restsUntil = performance.now() + rest;
    }
  }
}

/** Refuses metadata of another issuer, and leaves out endpoints that are not http(s): clients open them. */
function checkedMetadata(value: unknown, issuer: string): Metadata {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('its metadata is not a JSON object');
  const document = value as Record<string, unknown>;
  if (document['issuer'] !== issuer)
    throw new Error(
      `its metadata names the issuer ${String(document['issuer']).slice(0, 200)}, expected ${issuer}`,
    );
  return Object.fromEntries(
    Object.entries(document).filter(([key, member]) => !/_(?:endpoint|uri)$/.test(key) || isHttpUrl(member)),
  );
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value);
}
