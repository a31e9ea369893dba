import type { KeyObject } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { LIMITS } from '../../../core/limits.ts';
import { LruMap } from '../../../core/lru-map.ts';

const DAY = 24 * 60 * 60_000;
/** How long certificates are valid, and how long they are used. In ms. */
const VALID = 7 * DAY;
const USED = DAY;

/** Issues certificates for the names that clients ask for, with the certificate and key (PEM) of an authority. */
export class CertificateIssuer {
  readonly #authority: Authority;
  readonly #chain: string;
  readonly #issued = new LruMap<string, { readonly context: SecureContext; readonly until: number }>(
    LIMITS.issuedCertificates,
  );

  constructor(cert: Buffer, key: Buffer) {
    this.#authority = authorityOf(cert, key);
    this.#chain = String(cert);
  }

  /** As `SNICallback` of a TLS server. */
  readonly select = (name: string, done: (error: Error | null, context?: SecureContext) => void): void => {
    try {
      done(null, this.#contextFor(name.toLowerCase()));
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
    }
  };

  #contextFor(name: string): SecureContext {
    const known = this.#issued.get(name);
    if (known !== undefined && Date.now() < known.until) return known.context;
    // RFC 6066 §3: a DNS host name. The longest has 253 characters (RFC 1035 §2.3.4).
    if (!/^[a-z0-9_.-]{1,253}$/.test(name))
      throw new Error('the name that the client asks for is no host name');
    const { generateKeyPairSync } = process.getBuiltinModule('node:crypto');
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const der = certificate(name, publicKey, this.#authority);
    const context = createSecureContext({
      cert: `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n${this.#chain}`,
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    });
    this.#issued.set(name, { context, until: Date.now() + USED });
    return context;
  }
}

interface Authority {
  /** Its name, in DER. */
  readonly name: Buffer;
  /** Its key identifier (RFC 5280 §4.2.1.2). */
  readonly keyId: Buffer | undefined;
  readonly key: KeyObject;
  /** The algorithm of its signatures, in DER. */
  readonly algorithm: Buffer;
}

// Tags of ASN.1 (X.680 §8.6, X.690 §8.1.2).
const [BOOLEAN, INTEGER, BITS, OCTETS, NULL, OID, UTF8, TIME] = [1, 2, 3, 4, 5, 6, 12, 23];
const [SEQUENCE, SET] = [0x30, 0x31];
const context = (number: number, isConstructed = true): number => (isConstructed ? 0xa0 : 0x80) + number;

/** An element in DER (X.690 §10.1). */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length =
    size < 0x80
      ? [size]
      : size < 0x100
        ? [0x81, size]
        : size < 0x1_00_00
          ? [0x82, size >> 8, size & 0xff]
          : undefined;
  if (length === undefined) throw new RangeError('the element is too long');
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/** The element at the beginning of a text in DER, what is in it, and what follows it. */
function read(text: Buffer): { readonly whole: Buffer; readonly content: Buffer; readonly rest: Buffer } {
  const first = text[1] ?? 0;
  const digits = first < 0x80 ? 0 : first - 0x80;
  const size = digits === 0 ? first : text.readUIntBE(2, digits);
  const start = 2 + digits;
  const end = start + size;
  if (end > text.length) throw new RangeError('the certificate ends too early');
  return { whole: text.subarray(0, end), content: text.subarray(start, end), rest: text.subarray(end) };
}

const oid = (hex: string): Buffer => der(OID, Buffer.from(hex, 'hex'));

/** RFC 5758 §3.2, RFC 4055 §5, RFC 8410 §3. */
const ALGORITHMS: Readonly<Record<string, Buffer>> = {
  ec: der(SEQUENCE, oid('2a8648ce3d040302')),
  rsa: der(SEQUENCE, oid('2a864886f70d01010b'), der(NULL)),
  ed25519: der(SEQUENCE, oid('2b6570')),
};

const SUBJECT_KEY_ID = oid('551d0e');

function authorityOf(cert: Buffer, pem: Buffer): Authority {
  const { createPrivateKey, X509Certificate } = process.getBuiltinModule('node:crypto');
  const key = createPrivateKey(pem);
  const algorithm = ALGORITHMS[key.asymmetricKeyType ?? ''];
  if (algorithm === undefined) throw new Error('the key of the authority is of no kind that is supported');
  const { raw } = new X509Certificate(cert);
  let fields = read(read(raw).content).content;
  // RFC 5280 §4.1: version, serial number, algorithm, issuer, validity, subject.
  for (let skipped = fields[0] === context(0) ? 5 : 4; skipped > 0; skipped -= 1) fields = read(fields).rest;
  const at = raw.indexOf(SUBJECT_KEY_ID);
  const keyId = at < 0 ? undefined : read(read(raw.subarray(at + SUBJECT_KEY_ID.length)).content).content;
  return { name: read(fields).whole, keyId, key, algorithm };
}

/** A certificate for one name (RFC 5280 §4.1). */
function certificate(
  name: string,
  publicKey: KeyObject,
  { name: issuer, keyId, key, algorithm }: Authority,
): Buffer {
  const { randomBytes, sign } = process.getBuiltinModule('node:crypto');
  const serial = randomBytes(16);
  // Positive, and without leading zeros.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const now = Date.now();
  const commonName = der(SET, der(SEQUENCE, oid('550403'), der(UTF8, Buffer.from(name))));
  const hasSubject = name.length <= 64;
  const body = der(
    SEQUENCE,
    der(context(0), der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    algorithm,
    issuer,
    der(SEQUENCE, time(now - DAY), time(now + VALID)),
    der(SEQUENCE, ...(hasSubject ? [commonName] : [])),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(context(3), der(SEQUENCE, ...extensions(name, keyId, hasSubject))),
  );
  const signature = sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', body, key);
  return der(SEQUENCE, body, algorithm, der(BITS, Buffer.from([0]), signature));
}

function extensions(name: string, keyId: Buffer | undefined, hasSubject: boolean): Buffer[] {
  const extension = (id: string, isCritical: boolean, value: Buffer): Buffer =>
    der(SEQUENCE, oid(id), ...(isCritical ? [der(BOOLEAN, Buffer.from([0xff]))] : []), der(OCTETS, value));
  return [
    // No authority itself; for signatures; for servers (RFC 5280 §4.2.1.9, §4.2.1.3, §4.2.1.12).
    extension('551d13', true, der(SEQUENCE)),
    extension('551d0f', true, der(BITS, Buffer.from([7, 0x80]))),
    extension('551d25', false, der(SEQUENCE, oid('2b06010505070301'))),
    // The name (§4.2.1.6), critical if there is no other.
    extension('551d11', !hasSubject, der(SEQUENCE, der(context(2, false), Buffer.from(name)))),
    ...(keyId === undefined
      ? []
      : [extension('551d23', false, der(SEQUENCE, der(context(0, false), keyId)))]),
  ];
}

/** UTCTime (RFC 5280 §4.1.2.5.1), until 2049. */
const time = (ms: number): Buffer =>
  der(TIME, Buffer.from(`${new Date(ms).toISOString().slice(2, 19).replaceAll(/[-:T]/g, '')}Z`));
