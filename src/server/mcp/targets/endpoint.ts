import { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import type { Limits } from '../../../core/limits.ts';
import { nonEmpty } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { withScheme } from '../../kernel/url-scheme.ts';
import { parseAddress, type UpstreamAddress } from '../../transport/upstream/upstream.ts';
import type { Target } from '../connection/target.ts';

/** Fields of a target that is reached over HTTP. `what` completes "URL of the …". */
export const endpointFields = (what: string, example: string) => ({
  host: nonEmpty.describe(
    `URL of the ${what} (\`${example}\`), a host name together with \`port\` and \`path\`, or a Unix socket (\`unix:/path/of/socket\`), to which \`path\` can be added.`,
  ),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe('Port, when `host` is a bare name. `path` must be set too.'),
  path: z
    .string()
    .startsWith('/')
    .optional()
    .describe('Path of the endpoint, when `host` is a bare name or a Unix socket.'),
});

export interface EndpointConfig {
  readonly host: string;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
}

// `host:port` is also a URL with the scheme `host`.
const HOST_AND_PORT = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]):(\d{1,5})$/i;

/** URL of a target as text, which need not be valid. */
export function endpointText({ host, port, path = '' }: EndpointConfig, hasTls = false): string {
  const ownPort = HOST_AND_PORT.exec(host)?.[1];
  if (port !== undefined) return `${hasTls ? 'https' : 'http'}://${host}:${port}${path}`;
  if (ownPort === undefined) return host;
  return `${hasTls || Number(ownPort) === 443 ? 'https' : 'http'}://${host}`;
}

/** Where a target is: the server to connect to, and the URL there. */
export interface Endpoint {
  readonly address: UpstreamAddress;
  readonly url: URL;
}

/**
 * Address and URL of a target, which may be a Unix socket. `defaultPath` replaces a missing path. Reports a problem and
 * returns undefined if there is none.
 */
export function targetEndpoint(
  config: EndpointConfig,
  defaultPath: string,
  context: CompileContext,
  hasTls: boolean,
): Endpoint | undefined {
  if (!config.host.startsWith('unix:')) {
    const url = endpointUrl(config, defaultPath, context, hasTls);
    return url && { address: { origin: url.origin }, url };
  }
  if (config.port !== undefined)
    context.at('port').report({
      code: 'AGW0105',
      message: 'a Unix socket has no port',
      help: 'remove `port`',
    });
  const address = parseAddress(config.host, context.at('host'));
  if (address === undefined) return undefined;
  const origin = hasTls ? 'https://localhost' : 'http://localhost';
  // Not as a reference: `//` would begin a host.
  return { address: { ...address, origin }, url: new URL(origin + (config.path ?? defaultPath)) };
}

/**
 * URL of a target. `defaultPath` replaces a missing path. `host:port` means HTTP, and HTTPS on port 443 or with `hasTls`.
 * Reports a problem and returns undefined for anything that is not an http(s) URL without credentials.
 */
function endpointUrl(
  { host, port, path }: EndpointConfig,
  defaultPath: string,
  context: CompileContext,
  hasTls = false,
): URL | undefined {
  const at = context.at('host');
  if ((port === undefined) !== (path === undefined)) {
    context.report({
      code: 'AGW0105',
      message: '`port` and `path` must be set together',
      help: 'set both, or set `host` to a URL',
    });
    return undefined;
  }
  const text = endpointText({ host, port, path }, hasTls);
  const meant = withScheme(text);
  if (meant !== undefined || !URL.canParse(text)) {
    at.report({
      code: 'AGW0104',
      message: `\`${host}\` is not a URL`,
      label: 'expected http:// or https:// and a host',
      help: `write it as \`${meant ?? 'http://host:port/path'}\`, or add \`port\` and \`path\``,
    });
    return undefined;
  }
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    at.report({
      code: 'AGW0104',
      message: `invalid scheme: \`${url.protocol.slice(0, -1)}\``,
      help: 'use http or https',
    });
    return undefined;
  }
  if (hasTls && url.protocol === 'http:')
    at.report({
      code: 'AGW0105',
      message: '`policies.backendTLS` needs an https:// URL',
      help: 'write it as `https://…`, or remove `backendTLS`',
    });
  if (url.username !== '' || url.password !== '') {
    at.report({
      code: 'AGW0104',
      message: 'credentials in a URL are not supported',
      help: 'remove `user:password@`',
    });
    return undefined;
  }
  if (url.pathname === '/' && !text.endsWith('/')) url.pathname = defaultPath;
  return url;
}

/** Placeholder for a target with a reported configuration error: it is never opened. */
export function unusableTarget(name: string, limits: Limits): Target {
  return {
    name,
    limits,
    resumable: false,
    endpoint: undefined,
    open: () => Promise.reject(new AppError('no_backend')),
    close: () => Promise.resolve(),
  };
}
