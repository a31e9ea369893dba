import type { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../../core/errors.ts';
import type { Problem } from '../../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../../kernel/files/config-file.ts';

type Role = 'cert' | 'key' | 'root';

/** PEM text of the files that could be read. */
export type CertificateFiles = Readonly<Partial<Record<Role, Buffer>>>;

type FileProblem = Problem & { readonly key: Role };

/** The files of a server certificate, and what is wrong with them. */
export interface ReadCertificate {
  readonly files: CertificateFiles;
  /** Absolute paths of the files. */
  readonly paths: readonly string[];
  readonly problems: readonly FileProblem[];
}

/**
 * Reads a certificate, its key, and the authorities of clients, and checks that they can be used together. Paths are
 * relative to `folder` (of the configuration file), otherwise to the working folder. Nothing of a file is in a message.
 */
export function readCertificateFiles(
  config: Readonly<Partial<Record<Role, string | undefined>>>,
  folder: string,
): ReadCertificate {
  const files: Partial<Record<Role, Buffer>> = {};
  const paths: string[] = [];
  const problems: FileProblem[] = [];
  for (const role of ['cert', 'key', 'root'] as const) {
    const path = config[role];
    if (path === undefined) continue;
    const found = readFound(path, folder);
    paths.push(found.path);
    if ('problem' in found) problems.push({ key: role, ...found.problem });
    else files[role] = found.bytes;
  }
  for (const role of ['cert', 'key', 'root'] as const) {
    const problem = files[role] && contentProblem(role, String(files[role]));
    if (problem !== undefined) problems.push({ key: role, ...problem });
  }
  if (problems.length === 0) problems.push(...pairProblems(files));
  return { files, paths, problems };
}

type FoundFile = { readonly path: string } & ({ readonly bytes: Buffer } | { readonly problem: Problem });

function readFound(given: string, folder: string): FoundFile {
  const path = resolveConfigFile(folder, given);
  try {
    return { path, bytes: readFileSync(path) };
  } catch (error) {
    const missing = missingConfigFile(folder, given);
    return {
      path,
      problem: {
        code: 'AGW0107',
        message: missing ?? `cannot read the file: ${messageOf(error)}`,
        help: 'set the path of a PEM file, relative to the configuration file',
      },
    };
  }
}

const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/;
const KEY = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/;
const ENCRYPTED = /-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/;

function contentProblem(role: Role, text: string): Problem | undefined {
  const label = 'expected PEM text';
  if (role === 'key') {
    if (ENCRYPTED.test(text))
      return {
        code: 'AGW0104',
        message: 'the private key is encrypted, and there is nobody to ask for its passphrase',
        help: 'decrypt it, as with `openssl pkey -in FILE -out NEW`, and restrict who can read the file',
      };
    if (KEY.test(text)) return undefined;
    const help = CERTIFICATE.test(text)
      ? 'this is a certificate: `cert` and `key` may be swapped'
      : 'set the file with `BEGIN PRIVATE KEY`';
    return { code: 'AGW0104', message: 'the file has no private key', label, help };
  }
  if (CERTIFICATE.test(text)) return undefined;
  const help = KEY.test(text)
    ? 'this is a private key: `cert` and `key` may be swapped'
    : 'set the file with `BEGIN CERTIFICATE`';
  return { code: 'AGW0104', message: 'the file has no certificate', label, help };
}

/** What OpenSSL says of the files. Its messages do not quote them. */
function pairProblems({ cert, key, root }: CertificateFiles): FileProblem[] {
  const problems: FileProblem[] = [];
  const check = (role: Role, options: object): boolean => {
    try {
      createSecureContext(options);
      return true;
    } catch (error) {
      problems.push({ key: role, ...openSslProblem(error) });
      return false;
    }
  };
  if (root !== undefined) check('root', { ca: root });
  if (cert === undefined || key === undefined) return problems;
  // One after the other, to name the file that is wrong.
  if (check('cert', { cert }) && check('key', { key }) && check('key', { cert, key }))
    problems.push(...validityProblems(cert));
  return problems;
}

function openSslProblem(error: unknown): Problem {
  const message = messageOf(error);
  if (/key values mismatch|KEY_VALUES_MISMATCH/i.test(message))
    return {
      code: 'AGW0104',
      message: 'the private key does not belong to the certificate',
      help: 'set `cert` and `key` to files that were created together; the first certificate of `cert` counts',
    };
  return {
    code: 'AGW0104',
    message: `the file cannot be used: ${message}`,
    label: 'expected PEM text',
    help: 'look at it with `openssl x509 -in FILE -noout -text` or `openssl pkey -in FILE -noout`',
  };
}

/** When the certificate in a file that was read without an error expires, in ms since 1970. 0 without a file. */
export function expiryOf(cert: Buffer | undefined): number {
  return cert === undefined ? 0 : Date.parse(certificateIn(cert).validTo);
}

/** The first one: those that follow are of authorities. Loading `node:crypto` takes 10 ms. */
function certificateIn(cert: Buffer): X509Certificate {
  const { X509Certificate: Certificate } = process.getBuiltinModule('node:crypto');
  return new Certificate(cert);
}

/** A certificate that is not valid now is a warning: clocks differ, and a gateway that does not start serves nobody. */
function validityProblems(cert: Buffer): FileProblem[] {
  const { validFrom, validTo } = certificateIn(cert);
  const now = Date.now();
  const isExpired = Date.parse(validTo) < now;
  if (!isExpired && Date.parse(validFrom) <= now) return [];
  return [
    {
      key: 'cert',
      code: 'AGW0320',
      message: isExpired
        ? `the certificate has expired: ${validTo}`
        : `the certificate is not valid yet: ${validFrom}`,
      label: 'clients will not accept it',
      help: 'replace the file; it is read again when it changes',
    },
  ];
}
