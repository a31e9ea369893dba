import { hkdfSync } from 'node:crypto';
import { compactDecrypt } from 'jose/jwe/compact/decrypt';
import { CompactEncrypt } from 'jose/jwe/compact/encrypt';
import { isRecord, parseJson } from '../../../core/foreign.ts';
import { emptyReply } from '../../kernel/request/error-response.ts';
import { ownCookies } from '../../kernel/request/own-cookies.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';

/** Browsers keep at least 4096 bytes per cookie, with its name and attributes (RFC 6265 §6.1). */
const CHUNK = 3600;
/** Chunks of one value: together less than the headers that servers accept by default. */
const CHUNKS = 4;

/** What a value may be used for: a session cookie is not a login cookie. */
type Purpose = 'session' | 'login';

/**
 * Encrypted cookies (JWE with `dir` and A256GCM): browsers can neither read nor change them. `secret` is any secret of the
 * process, `id` the policy: values of another policy are not accepted.
 */
export class SealedCookies {
  readonly #key: Uint8Array;
  readonly #attributes: string;
  readonly #prefix: string;

  constructor(secret: Buffer, id: string, isHttps: boolean) {
    this.#key = new Uint8Array(hkdfSync('sha256', secret, '', `agctl oidc ${id}`, 32));
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`;
    // The beginning of the names is that of `isOwnCookie`: these cookies never leave the gateway.
    // RFC 6265bis §4.1.3.2: no other host, and no page without TLS, can set a cookie with this prefix.
    this.#prefix = `${isHttps ? '__Host-' : ''}agctl_oidc_${id}`;
  }

  /** Name of a cookie of this policy. */
  name(suffix: string): string {
    return `${this.#prefix}_${suffix}`;
  }

  /** `Set-Cookie` fields for a value; undefined if it is too large for cookies. `maxAge` is in seconds. */
  async set(name: string, purpose: Purpose, value: object, maxAge: number): Promise<string[] | undefined> {
    const sealed = await new CompactEncrypt(Buffer.from(JSON.stringify(value)))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', typ: purpose })
      .encrypt(this.#key);
    const chunks = sealed.match(new RegExp(`.{1,${CHUNK}}`, 'g')) ?? [];
    if (chunks.length > CHUNKS) return undefined;
    // With the number of chunks: a browser may still have those of an earlier, longer value.
    return chunks.map((chunk, index) => {
      const value = index === 0 ? `${chunks.length}:${chunk}` : chunk;
      return `${chunkName(name, index)}=${value}; Max-Age=${maxAge}; ${this.#attributes}`;
    });
  }

  /** The value of a cookie; undefined if there is none, or one that was not made with this key and for this purpose. */
  async read(
    ctx: RequestContext,
    name: string,
    purpose: Purpose,
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    const cookies = new Map(ownCookies.get(ctx)?.map((pair) => splitPair(pair)));
    const [, count = '', first = ''] = /^([1-9]):(.+)$/.exec(cookies.get(name) ?? '') ?? [];
    let sealed = first;
    for (let index = 1; index < Math.min(Number(count), CHUNKS); index += 1)
      sealed += cookies.get(chunkName(name, index)) ?? '';
    if (sealed === '') return undefined;
    try {
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, this.#key, {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      });
      // A second lock: sessions and logins have no member in common that both need.
      if (protectedHeader['typ'] !== purpose) return undefined;
      const value = parseJson(Buffer.from(plaintext).toString());
      return isRecord(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  /** `Set-Cookie` fields that remove the cookies of these names. */
  clear(names: readonly string[]): string[] {
    return names.map((name) => `${name}=; Max-Age=0; ${this.#attributes}`);
  }

  /** Names of the cookies of this policy in a request that begin with this suffix. */
  namesIn(ctx: RequestContext, suffix: string): string[] {
    const start = this.name(suffix);
    const names = (ownCookies.get(ctx) ?? []).map((pair) => splitPair(pair)[0]);
    return names.filter((name) => name.startsWith(start));
  }
}

/** Sends the browser to another page, with cookies. */
export function redirect(location: string, cookies: readonly string[]): Reply {
  const reply = emptyReply(302);
  reply.headers.append('location', location);
  return withCookies(reply, cookies);
}

/** RFC 6749 §10.3: what contains a credential is not cached. */
export function withCookies(reply: Reply, cookies: readonly string[]): Reply {
  reply.headers.set('cache-control', 'no-store');
  for (const cookie of cookies) reply.headers.append('set-cookie', cookie);
  return reply;
}

const chunkName = (name: string, index: number): string => (index === 0 ? name : `${name}.${index}`);

function splitPair(pair: string): [string, string] {
  const at = pair.indexOf('=');
  return at === -1 ? [pair, ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
}
