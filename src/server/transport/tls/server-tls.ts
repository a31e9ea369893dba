import type { TlsOptions } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { usualSeverity } from '../../../core/diagnostic.ts';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { choice, mapping } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { ReloadedFile, RereadProblem } from '../../kernel/files/reloaded-file.ts';
import {
  type CertificateFiles,
  expiryOf,
  type ReadCertificate,
  readCertificateFiles,
} from './certificate-files.ts';
import { CertificateIssuer } from './issued-certificates.ts';
import type { ServerTls } from './tls-entrance.ts';

const VERSIONS = { TLS_V1_2: 'TLSv1.2', TLS_V1_3: 'TLSv1.3' } as const;

/** TLS versions by upstream's names. */
export const tlsVersionSchema = z.enum(['TLS_V1_2', 'TLS_V1_3'], {
  error: 'expected `TLS_V1_2` or `TLS_V1_3`: older versions are not safe (RFC 8996)',
});

/** Names of cipher suites (IANA) and what OpenSSL calls them. */
const CIPHERS: Readonly<Record<string, string>> = {
  TLS_AES_256_GCM_SHA384: 'TLS_AES_256_GCM_SHA384',
  TLS_AES_128_GCM_SHA256: 'TLS_AES_128_GCM_SHA256',
  TLS_CHACHA20_POLY1305_SHA256: 'TLS_CHACHA20_POLY1305_SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
};

const cipher = z
  .string()
  // The names of the library that upstream uses.
  .transform((name) => name.replace(/^TLS13_/, 'TLS_'))
  .refine((name) => name in CIPHERS, {
    error: `expected one of ${Object.keys(CIPHERS).join(', ')}`,
  });

export const cipherSuitesSchema = z.array(cipher).min(1);

/** Key exchange groups and what OpenSSL calls them. */
const GROUPS = { X25519: 'X25519', 'P-256': 'P-256', 'P-384': 'P-384', X25519_MLKEM768: 'X25519MLKEM768' };

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- keys of a constant.
export const keyExchangeGroupsSchema = z.array(z.enum(Object.keys(GROUPS) as (keyof typeof GROUPS)[])).min(1);

const file = z.string().min(1);

/** `tls` of a gateway or listener. */
export const serverTlsSchema = z.lazy(() =>
  mapping(
    'TLS of the connections of clients. Paths are relative to the configuration file, otherwise to the working folder. Files are read again when they change.',
    {
      mode: choice(
        '`dynamicCa`: `cert` and `key` are those of an authority, with which a certificate is issued for each name that a client asks for (SNI). Its clients must trust the authority.',
        ['static', 'dynamicCa'],
        'static',
      ),
      cert: file.describe(
        'File with the certificate of the gateway (PEM), followed by those of intermediate authorities.',
      ),
      key: file.describe('File with the private key of the certificate (PEM), not encrypted.'),
      root: file
        .optional()
        .describe(
          'File with the certificates (PEM) of the authorities that issue certificates of clients. If set, every client needs one.',
        ),
      cipherSuites: cipherSuitesSchema
        .optional()
        .describe(
          'Cipher suites that clients may use, such as `TLS_AES_256_GCM_SHA384`, the preferred one first.',
        ),
      minTLSVersion: tlsVersionSchema
        .optional()
        .describe('Oldest TLS version that clients may use; `TLS_V1_2` by default.'),
      maxTLSVersion: tlsVersionSchema.optional().describe('Newest TLS version that clients may use.'),
      keyExchangeGroups: keyExchangeGroupsSchema
        .optional()
        .describe('Key exchange groups that clients may use, the preferred one first.'),
    },
  ).meta({
    foreignNames: {
      minTlsVersion: 'minTLSVersion',
      maxTlsVersion: 'maxTLSVersion',
      certificate: 'cert',
      ca: 'root',
      clientCa: 'root',
    },
    elsewhere: {
      spiffe: 'the SPIFFE Workload API is not supported: set `cert`, `key` and `root` to files',
    },
  }),
);

export type ServerTlsConfig = z.output<typeof serverTlsSchema>;

/** Settings of all listeners, which those of a listener replace: `frontendPolicies.tls`. */
export interface TlsDefaults {
  readonly minVersion?: keyof typeof VERSIONS | undefined;
  readonly maxVersion?: keyof typeof VERSIONS | undefined;
  readonly cipherSuites?: readonly string[] | undefined;
  readonly keyExchangeGroups?: readonly (keyof typeof GROUPS)[] | undefined;
  readonly handshakeTimeout?: number | undefined;
  /** Protocols that clients may select; if there are none, they need not select one. */
  readonly alpn?: readonly string[] | undefined;
}

/** A `ServerTls` that reads its files again when they change. */
export interface ReloadedTls extends ServerTls {
  /** The certificate in use (PEM): the one that clients are shown, or that of the authority which issues theirs. */
  readonly certificate: Buffer | undefined;
  readonly reloads: readonly ReloadedFile[];
}

/** Reads the files of a `tls` section. Reports a problem for each one that cannot be used. */
export function compileServerTls(
  config: ServerTlsConfig,
  defaults: TlsDefaults,
  context: CompileContext,
): ReloadedTls {
  const { log, folder, settings } = context;
  const first = readCertificateFiles(config, folder);
  for (const { key, ...problem } of first.problems) context.at(key).report(problem);
  const protocol = protocolOptions(config, defaults);
  if (config.mode === 'dynamicCa' && config.root !== undefined)
    context.at('root').report({
      code: 'AGW0105',
      message: '`root` cannot be used with `mode: dynamicCa`',
      help: 'remove it: clients have no certificates then',
      atKey: true,
    });
  checkVersions(config, defaults, context);
  const optionsOf = ({ cert, key, root }: CertificateFiles): TlsOptions => ({
    ...protocol,
    ...(config.mode === 'dynamicCa' ? cert && key && issuing(cert, key, context) : { cert, key }),
    ...(root && { ca: root, requestCert: true, rejectUnauthorized: true }),
  });
  const tls = {
    options: optionsOf(first.files),
    certificate: first.files.cert,
    failed: failureLog(config.cert, context),
  };
  const state = { file: config.cert, expires: 0, isCurrent: true };
  if (errorIn(first) === undefined) {
    state.expires = expiryOf(first.files.cert);
    context.inspection.certificates.push(() => state);
  }
  let used = first.files;
  const changed = (): RereadProblem => {
    const read = readCertificateFiles(config, folder);
    // A worker is told of all files when it has started, and a link may have changed to a file of the same content.
    if (state.isCurrent && isDeepStrictEqual(read.files, used)) return undefined;
    const problem = errorIn(read);
    state.isCurrent = problem === undefined;
    if (problem !== undefined) {
      log.error('proxy::tls', 'a changed certificate cannot be used: the previous one stays in use', {
        file: config[problem.key],
        setting: [...context.path, problem.key].join('.'),
        problem: problem.message,
      });
      settings.counter('tlsReloads')([config.cert, 'failed']);
      return problem.message;
    }
    used = read.files;
    tls.options = optionsOf(read.files);
    tls.certificate = read.files.cert;
    state.expires = expiryOf(read.files.cert);
    log.info('proxy::tls', 'a changed certificate is in use', { cert: config.cert });
    for (const { key, message } of read.problems)
      log.warn('proxy::tls', 'clients will not accept the changed certificate', {
        file: config[key],
        problem: message,
      });
    settings.counter('tlsReloads')([config.cert, 'loaded']);
    return undefined;
  };
  return Object.assign(tls, { reloads: first.paths.map((path) => ({ file: path, changed })) });
}

/** Why the files cannot be used. */
const errorIn = ({ problems }: ReadCertificate): ReadCertificate['problems'][number] | undefined =>
  problems.find(({ code }) => usualSeverity(code) !== 'warning');

/** Options with certificates that are issued for each name. Reports an authority that cannot issue any. */
function issuing(cert: Buffer, key: Buffer, context: CompileContext): TlsOptions {
  const { X509Certificate } = process.getBuiltinModule('node:crypto');
  try {
    if (!new X509Certificate(cert).ca)
      context.at('cert').report({
        code: 'AGW0320',
        message: 'the certificate is not that of an authority',
        label: 'clients will not accept what it issues',
        help: 'set the certificate of an authority (`CA:TRUE`), or remove `mode`',
      });
    return { SNICallback: new CertificateIssuer(cert, key).select };
  } catch (error) {
    context
      .at('cert')
      .report({ code: 'AGW0104', message: `the authority cannot be used: ${messageOf(error)}` });
    return {};
  }
}

/**
 * Counts failed handshakes, and logs them: at level `info` one of them in `LIMITS.tlsFailureInterval`, with the number since
 * the last such line, because scanners cause any number of them; each one at level `debug`.
 */
function failureLog(cert: string, { log, settings }: CompileContext): ServerTls['failed'] {
  let quietUntil = 0;
  let unsaid = 0;
  return (error, address) => {
    const { code = error.message } = error as NodeJS.ErrnoException;
    settings.counter('tlsFailures')([reasonOf(code)]);
    const fields = { cert, 'src.addr': address, problem: code };
    unsaid += 1;
    const now = performance.now();
    if (now < quietUntil) {
      log.debug('proxy::tls', 'a TLS handshake failed', fields);
      return;
    }
    quietUntil = now + LIMITS.tlsFailureInterval;
    log.info('proxy::tls', 'a TLS handshake failed', { ...fields, count: unsaid });
    unsaid = 0;
  };
}

/** A class of errors of Node.js and OpenSSL, of which there are hundreds. */
function reasonOf(code: string): 'certificate' | 'closed' | 'timeout' | 'protocol' {
  if (code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'timeout';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'closed';
  // Both the gateway and the client may refuse the certificate of the other.
  return /CERT|UNKNOWN_CA/.test(code) ? 'certificate' : 'protocol';
}

function protocolOptions(config: ServerTlsConfig, defaults: TlsDefaults): TlsOptions {
  const { cipherSuites = defaults.cipherSuites, keyExchangeGroups = defaults.keyExchangeGroups } = config;
  const max = config.maxTLSVersion ?? defaults.maxVersion;
  const { alpn = ['h2', 'http/1.1'] } = defaults;
  const ciphers = cipherSuites?.flatMap((name) => CIPHERS[name] ?? []);
  return {
    minVersion: VERSIONS[config.minTLSVersion ?? defaults.minVersion ?? 'TLS_V1_2'],
    ...(max && { maxVersion: VERSIONS[max] }),
    ...(ciphers && { ciphers: ciphers.join(':'), honorCipherOrder: true }),
    ...(keyExchangeGroups && { ecdhCurve: keyExchangeGroups.map((group) => GROUPS[group]).join(':') }),
    ...(defaults.handshakeTimeout && { handshakeTimeout: defaults.handshakeTimeout }),
    ...(alpn.length > 0 && { ALPNProtocols: [...alpn] }),
  };
}

function checkVersions(config: ServerTlsConfig, defaults: TlsDefaults, context: CompileContext): void {
  const min = config.minTLSVersion ?? defaults.minVersion;
  const max = config.maxTLSVersion ?? defaults.maxVersion;
  if (min !== 'TLS_V1_3' || max !== 'TLS_V1_2') return;
  context.at(config.maxTLSVersion === undefined ? 'minTLSVersion' : 'maxTLSVersion').report({
    code: 'AGW0105',
    message: 'the newest allowed TLS version is older than the oldest allowed one',
    help: 'remove one of them',
  });
}
