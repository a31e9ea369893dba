import type { KeyObject } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { LIMITS } from '../../../core/limits.ts';
import { LruMap } from '../../../core/lru-map.ts';
import type { IssuedBy } from './issue-certificate.ts';

const DAY = 24 * 60 * 60_000;
/** How long certificates are valid, and how long they are used. In ms. */
const VALID = 7 * DAY;
const USED = DAY;

interface Issued {
  readonly context: Promise<SecureContext>;
  readonly until: number;
}

/** Issues certificates for the names that clients ask for, with the certificate and key (PEM) of an authority. */
export class CertificateIssuer {
  readonly #chain: string;
  readonly #key: KeyObject;
  readonly #issued = new LruMap<string, Issued>(LIMITS.issuedCertificates);
  #authority: Promise<IssuedBy> | undefined;

  /** Throws for a key of a kind that is not supported. */
  constructor(cert: Buffer, key: Buffer) {
    const { createPrivateKey } = process.getBuiltinModule('node:crypto');
    this.#chain = String(cert);
    this.#key = createPrivateKey(key);
    if (!SUPPORTED.has(this.#key.asymmetricKeyType ?? ''))
      throw new Error('the key of the authority is of no kind that is supported');
  }

  /** As `SNICallback` of a TLS server. */
  readonly select = (name: string, done: (error: Error | null, context?: SecureContext) => void): void => {
    this.#contextFor(name.toLowerCase()).then(
      (context) => done(null, context),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
    );
  };

  async #contextFor(name: string): Promise<SecureContext> {
    const known = this.#issued.get(name);
    if (known !== undefined && Date.now() < known.until) return known.context;
    // RFC 6066 §3: a DNS host name. The longest has 253 characters (RFC 1035 §2.3.4).
    if (!/^[a-z0-9_.-]{1,253}$/.test(name))
      throw new Error('the name that the client asks for is not a host name');
    const context = this.#issue(name);
    this.#issued.set(name, { context, until: Date.now() + USED });
    context.catch(() => this.#issued.delete(name));
    return context;
  }

  async #issue(name: string): Promise<SecureContext> {
    const { issueCertificate, readAuthority } = await import('./issue-certificate.ts');
    this.#authority ??= readAuthority(this.#chain, this.#key);
    const { cert, key } = await issueCertificate(name, await this.#authority, { before: DAY, after: VALID });
    return createSecureContext({ cert: `${cert}${this.#chain}`, key });
  }
}

const SUPPORTED = new Set(['ec', 'rsa']);
