import { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import type { Limits } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { createUpstream, type Upstream } from '../../transport/upstream.ts';
import { defineTarget, type Target } from '../target.ts';
import { HttpChannel } from './http-channel.ts';

const schema = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .describe(
        'URL of the MCP endpoint (`https://host/mcp`), or a host name together with `port` and `path`.',
      ),
    port: z
      .int()
      .min(1)
      .max(65_535)
      .optional()
      .describe('Port, when `host` is a bare name. `path` must be set too.'),
    path: z.string().startsWith('/').optional().describe('Path of the endpoint, when `host` is a bare name.'),
  })
  .describe('A remote MCP server, reached over Streamable HTTP.')
  .meta({ foreignNames: { url: 'host' } });

/** A server reached over Streamable HTTP. All sessions share its connections. */
export const mcp = defineTarget({
  key: 'mcp',
  schema,
  compile(name, config, context): Target {
    const url = endpointUrl(config, context);
    const { limits } = context.settings;
    if (url === undefined) return unusable(name, limits);
    const upstream: Upstream = createUpstream(
      { origin: url.origin },
      { meter: context.settings.callMeter('Primary', 'Mcp') },
    );
    return {
      name,
      limits,
      resumable: true,
      endpoint: upstream.address,
      open: (events, sessionId) =>
        Promise.resolve(
          new HttpChannel(
            { name, upstream, path: url.pathname + url.search, log: context.log, limits },
            events,
            sessionId,
          ),
        ),
      clean: (text) => context.redactor().line(text),
      close: () => upstream.close(),
    };
  },
});

function endpointUrl(
  { host, port, path }: z.output<typeof schema>,
  context: CompileContext,
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
  const text = port === undefined ? host : `http://${host}:${port}${path}`;
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
  if (url.username !== '' || url.password !== '') {
    at.report({
      code: 'AGW0104',
      message: 'credentials in a URL are not supported',
      help: 'remove `user:password@`',
    });
    return undefined;
  }
  // A URL without a path means /mcp, as everywhere in the configuration.
  if (url.pathname === '/' && !text.endsWith('/')) url.pathname = '/mcp';
  return url;
}

/** Placeholder for a target with a reported configuration error: it is never opened. */
function unusable(name: string, limits: Limits): Target {
  return {
    name,
    limits,
    resumable: false,
    endpoint: undefined,
    open: () => Promise.reject(new AppError('no_backend')),
    close: () => Promise.resolve(),
  };
}
