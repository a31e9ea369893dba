import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../../kernel/files/config-file.ts';
import { expiryOf } from './certificate-files.ts';

/** TLS of connections to a backend. Paths are relative to the folder of the configuration file. */
export const backendTlsSchema = z.lazy(() =>
  mapping('TLS of the connections to the server. Files are read when the configuration is loaded.', {
    root: nonEmpty
      .optional()
      .describe(
        'File with the certificates (PEM) of the authorities that may issue the certificate of the server, instead of the public ones.',
      ),
    cert: nonEmpty.optional().describe('File with the client certificate (PEM). `key` must be set too.'),
    key: nonEmpty.optional().describe('File with the private key (PEM) of the client certificate.'),
    hostname: nonEmpty
      .optional()
      .describe('Name that the certificate must be for, also sent as SNI. Default: the host of the address.'),
    insecure: z
      .boolean()
      .default(false)
      .describe('Accept any certificate. For tests only: anyone on the network can pose as the server.'),
    insecureHost: z
      .boolean()
      .default(false)
      .describe('Accept a certificate for another host name, if a trusted authority issued it.'),
  }).meta({ foreignNames: { ca: 'root', serverName: 'hostname', sni: 'hostname' } }),
);

export type BackendTls = z.output<typeof backendTlsSchema>;

/** Options of `tls.connect`. */
export interface TlsOptions {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
  readonly checkServerIdentity?: () => undefined;
}

/** Reads the files of a `backendTLS` section. Reports a problem for each one that cannot be used. */
export function compileBackendTls(config: BackendTls, context: CompileContext): TlsOptions {
  if ((config.cert === undefined) !== (config.key === undefined))
    context.report({
      code: 'AGW0105',
      message: '`cert` and `key` must be set together',
      help: 'set both for a client certificate, or neither',
    });
  const file = (key: 'root' | 'cert' | 'key'): Buffer | undefined => {
    const path = config[key];
    if (path === undefined) return undefined;
    const found = resolveConfigFile(context.folder, path);
    context.dependsOn(found);
    try {
      return readFileSync(found);
    } catch (error) {
      context.at(key).report({
        code: 'AGW0107',
        message: missingConfigFile(context.folder, path) ?? `cannot read the file: ${messageOf(error)}`,
        help: 'set the path of a PEM file, relative to the configuration file',
      });
      return undefined;
    }
  };
  const [ca, cert, key] = [file('root'), file('cert'), file('key')];
  const options: TlsOptions = {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(config.hostname !== undefined && { servername: config.hostname }),
    ...(config.insecure && { rejectUnauthorized: false }),
    ...(config.insecureHost && { checkServerIdentity: () => undefined }),
  };
  if (areUsable(options, context) && options.cert !== undefined && config.cert !== undefined) {
    // A changed file that cannot be used refuses the reload.
    const state = { file: config.cert, expires: expiryOf(options.cert), isCurrent: true };
    context.inspection.certificates.push(() => state);
  }
  return options;
}

/** Whether the certificates can be used; reports those that cannot. OpenSSL's message does not quote the file. */
function areUsable({ ca, cert, key }: TlsOptions, context: CompileContext): boolean {
  const check = (name: string, options: object): boolean => {
    try {
      createSecureContext(options);
      return true;
    } catch (error) {
      context.at(name).report({
        code: 'AGW0104',
        message: `the file cannot be used: ${messageOf(error)}`,
        label: 'expected PEM text',
        help: 'for a client certificate, `key` must be the private key of `cert`',
      });
      return false;
    }
  };
  if (ca !== undefined) {
    if (!/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/.test(String(ca)))
      context.at('root').report({
        code: 'AGW0104',
        message: 'the file has no certificate',
        label: 'expected PEM text',
        help: 'convert the certificate of the authority to PEM',
      });
    else check('root', { ca });
  }
  return cert === undefined || check('cert', { cert, key });
}
