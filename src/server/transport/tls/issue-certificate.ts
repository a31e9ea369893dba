import { type KeyObject, randomBytes, subtle, X509Certificate } from 'node:crypto';
import { Integer, OctetString, Utf8String } from 'asn1js';
import {
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  Extension,
  ExtKeyUsage,
  GeneralName,
  GeneralNames,
} from 'pkijs';

/** An authority that issues certificates. */
export interface IssuedBy {
  readonly certificate: Certificate;
  readonly key: CryptoKey;
}

/** Extensions of RFC 5280 §4.2.1, a purpose (§4.2.1.12) and an attribute (X.520). */
const [SUBJECT_KEY_ID, KEY_USAGE, ALT_NAME, CONSTRAINTS, AUTHORITY_KEY_ID, EXTENDED_USAGE] = [
  '2.5.29.14',
  '2.5.29.15',
  '2.5.29.17',
  '2.5.29.19',
  '2.5.29.35',
  '2.5.29.37',
] as const;
const SERVER = '1.3.6.1.5.5.7.3.1';
const COMMON_NAME = '2.5.4.3';
const DNS_NAME = 2;
/** `digitalSignature` alone, in DER (RFC 5280 §4.2.1.3). */
const SIGNATURES = Uint8Array.of(3, 2, 7, 0x80).buffer;

const CURVES: Readonly<Record<string, string>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};

/** Reads the certificate (PEM) of an authority. Rejects for a key of a kind that is not supported. */
export async function readAuthority(cert: string, key: KeyObject): Promise<IssuedBy> {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  const namedCurve = CURVES[details?.namedCurve ?? ''];
  if (type !== 'rsa' && namedCurve === undefined)
    throw new Error('the key of the authority has an unknown curve');
  const algorithm =
    namedCurve === undefined ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } : { name: 'ECDSA', namedCurve };
  const bytes = key.export({ type: 'pkcs8', format: 'der' });
  return {
    certificate: Certificate.fromBER(new X509Certificate(cert).raw),
    key: await subtle.importKey('pkcs8', bytes, algorithm, false, ['sign']),
  };
}

/** A certificate for one name, and its key, as PEM. `before` and `after`: from when and until when it is valid, in ms from now. */
export async function issueCertificate(
  name: string,
  { certificate: authority, key: signer }: IssuedBy,
  { before, after }: { readonly before: number; readonly after: number },
): Promise<{ readonly cert: string; readonly key: string }> {
  const pair = await subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const issued = new Certificate();
  const serial = randomBytes(16);
  // Positive, and without leading zeros.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  issued.version = 2;
  issued.serialNumber = new Integer({ valueHex: Uint8Array.from(serial).buffer });
  issued.issuer = authority.subject;
  // The longest common name has 64 characters (RFC 5280, appendix A.1).
  const hasSubject = name.length <= 64;
  if (hasSubject)
    issued.subject.typesAndValues.push(
      new AttributeTypeAndValue({ type: COMMON_NAME, value: new Utf8String({ value: name }) }),
    );
  issued.notBefore.value = new Date(Date.now() - before);
  issued.notAfter.value = new Date(Date.now() + after);
  issued.extensions = [
    extension(CONSTRAINTS, true, new BasicConstraints({ cA: false }).toSchema().toBER()),
    extension(KEY_USAGE, true, SIGNATURES),
    extension(EXTENDED_USAGE, false, new ExtKeyUsage({ keyPurposes: [SERVER] }).toSchema().toBER()),
    // Critical if there is no other name (§4.2.1.6).
    extension(
      ALT_NAME,
      !hasSubject,
      new GeneralNames({ names: [new GeneralName({ type: DNS_NAME, value: name })] }).toSchema().toBER(),
    ),
    ...keyIdOf(authority),
  ];
  await issued.subjectPublicKeyInfo.importKey(pair.publicKey);
  await issued.sign(signer, 'SHA-256');
  const der = Buffer.from(issued.toSchema(true).toBER());
  const key = Buffer.from(await subtle.exportKey('pkcs8', pair.privateKey));
  return { cert: pem('CERTIFICATE', der), key: pem('PRIVATE KEY', key) };
}

const extension = (extnID: string, critical: boolean, extnValue: ArrayBuffer): Extension =>
  new Extension({ extnID, critical, extnValue });

function keyIdOf({ extensions }: Certificate): Extension[] {
  const id: unknown = extensions?.find(({ extnID }) => extnID === SUBJECT_KEY_ID)?.parsedValue;
  if (!(id instanceof OctetString)) return [];
  const keyIdentifier = new OctetString({ valueHex: id.valueBlock.valueHexView });
  return [
    extension(AUTHORITY_KEY_ID, false, new AuthorityKeyIdentifier({ keyIdentifier }).toSchema().toBER()),
  ];
}

/** RFC 7468. */
const pem = (label: string, bytes: Buffer): string =>
  `-----BEGIN ${label}-----\n${bytes.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END ${label}-----\n`;
