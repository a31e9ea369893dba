import { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import type { Limits } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { Target } from '../target.ts';

/** Fields of a target that is reached over HTTP. `what` completes "URL of the …". */
export const endpointFields = (what: string, example: string) => ({
  host: z
    .string()
    .min(1)
    .describe(`URL of the ${what} (\`${example}\`), or a host name together with \`port\` and \`path\`.`),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe('Port, when `host` is a bare name. `path` must be set too.'),
  path: z.string().startsWith('/').optional().describe('Path of the endpoint, when `host` is a bare name.'),
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

/**
 * URL of a target. `defaultPath` replaces a missing path. `host:port` means HTTP, and HTTPS on port 443 or with `hasTls`.
 * Reports a problem and returns undefined for anything that is not an http(s) URL without credentials.
 */
export function endpointUrl(
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
  if (!URL.canParse(text)) {
    at.report({
      code: 'AGW0104',
      message: `\`${host}\` is not a URL`,
      label: 'expected http:// or https:// and a host',
      help: 'write it as `http://host:port/path`, or add `port` and `path`',
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
