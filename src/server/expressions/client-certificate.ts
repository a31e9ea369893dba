import type { X509Certificate } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { parseJson, textIn } from '../../core/foreign.ts';
import type { Declaration } from './cel/declarations.ts';

/** Members of `source` that come from the certificate of the client. */
export const CERTIFICATE_MEMBERS = {
  certificate: {
    type: 'string',
    doc: 'Certificate of the client (PEM). It and the following are set on listeners with `tls.root`.',
  },
  subject: { type: 'string', doc: 'Subject of the certificate, such as `O=Example, CN=ann`.' },
  subjectCn: { type: 'string', doc: 'Common name of the subject.' },
  issuer: { type: 'string', doc: 'Issuer of the certificate.' },
  subjectAltNames: {
    type: 'list',
    doc: 'Alternative names in the certificate: URIs, host names and IP addresses.',
  },
  spiffeId: { type: 'string', doc: 'The first alternative name that begins with `spiffe://`.' },
  identity: {
    type: 'map',
    doc: 'The SPIFFE ID, if it has the form `spiffe://<trustDomain>/ns/<namespace>/sa/<serviceAccount>`.',
    members: {
      trustDomain: { type: 'string', doc: 'Trust domain.' },
      namespace: { type: 'string', doc: 'Namespace.' },
      serviceAccount: { type: 'string', doc: 'Service account.' },
    },
  },
} as const satisfies Readonly<Record<string, Declaration>>;

export type CertificateMembers = { readonly [Name in keyof typeof CERTIFICATE_MEMBERS]: unknown };

/** Certificates are parsed when an expression first reads one; the connections of a client have their own objects. */
const known = new WeakMap<X509Certificate, CertificateMembers>();

export function certificateMembers(certificate: X509Certificate): CertificateMembers {
  let members = known.get(certificate);
  if (members === undefined) {
    members = membersOf(certificate);
    known.set(certificate, members);
  }
  return members;
}

function membersOf(certificate: X509Certificate): CertificateMembers {
  const { subject, issuer, subjectAltName } = certificate;
  const subjectAltNames = namesIn(subjectAltName ?? '');
  const spiffeId = subjectAltNames.find((name) => name.startsWith('spiffe://'));
  const [, trustDomain, namespace, serviceAccount] =
    /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(spiffeId ?? '') ?? [];
  return {
    certificate: certificate.toString(),
    subject: oneLine(subject),
    subjectCn: unescaped(/^CN=(.*)$/m.exec(subject)?.[1]),
    issuer: oneLine(issuer),
    subjectAltNames,
    spiffeId,
    identity: trustDomain === undefined ? undefined : { trustDomain, namespace, serviceAccount },
  };
}

/** Node.js writes one attribute per line, and escapes line breaks in their values. */
const oneLine = (name: string): string => (name ?? '').replaceAll('\n', ', ');

/** RFC 4514 §2.4: a backslash in front of a character, or of its hexadecimal code. */
const unescaped = (value: string | undefined): string | undefined =>
  value?.replace(/\\(?:([0-9A-F]{2})|(.))/gi, (_, hex?: string, character?: string) =>
    hex === undefined ? (character ?? '') : String.fromCharCode(Number.parseInt(hex, 16)),
  );

/** `URI:spiffe://a/b, DNS:a.example`: Node.js writes a value with a comma or quote as a JSON string. */
function namesIn(subjectAltName: string): string[] {
  const names: string[] = [];
  // Sticky: what is inside a quoted value is not an entry of its own.
  for (const [, type, text = ''] of subjectAltName.matchAll(
    /(?:^|, )([^:,"]+):("(?:[^"\\]|\\.)*"|[^,]*)/gy,
  )) {
    const value = text.startsWith('"') ? textIn(parseJson(text)) : text;
    if (type === 'URI' || type === 'DNS') names.push(value);
    if (type === 'IP Address')
      names.push(isIPv6(value) ? new URL(`http://[${value}]`).hostname.slice(1, -1) : value);
  }
  return names;
}
