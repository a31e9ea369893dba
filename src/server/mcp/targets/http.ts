import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import {
  createUpstream,
  parseAddress,
  type Upstream,
  type UpstreamAddress,
} from '../../transport/upstream.ts';
import { defineTarget, type Target } from '../target.ts';
import { endpointFields, endpointUrl, unusableTarget } from './endpoint.ts';
import { HttpChannel } from './http-channel.ts';

const schema = z
  .strictObject({
    ...endpointFields('MCP endpoint', 'https://host/mcp'),
    host: z
      .string()
      .min(1)
      .describe(
        'URL of the MCP endpoint (`https://host/mcp`), a host name together with `port` and `path`, or a Unix socket (`unix:/path/of/socket`), where `path` is `/mcp` by default.',
      ),
  })
  .describe('A remote MCP server, reached over Streamable HTTP.')
  .meta({ foreignNames: { url: 'host' } });

type HttpConfig = z.output<typeof schema>;

/** A server reached over Streamable HTTP. All sessions share its connections. */
export const mcp = defineTarget({
  key: 'mcp',
  schema,
  hasPolicies: true,
  compile(name, config, context, policies): Target {
    const { limits } = context.settings;
    const hasTls = policies?.tls !== undefined;
    const endpoint = config.host.startsWith('unix:')
      ? socketEndpoint(config, hasTls, context)
      : urlEndpoint(config, hasTls, context);
    if (endpoint === undefined) return unusableTarget(name, limits);
    const upstream: Upstream = createUpstream(endpoint.address, {
      meter: context.settings.callMeter('Primary', 'Mcp'),
      ...policies,
    });
    const { path } = endpoint;
    return {
      name,
      limits,
      resumable: true,
      relatesMessages: true,
      endpoint: upstream.address,
      open: (events, sessionId) =>
        Promise.resolve(
          new HttpChannel({ name, upstream, path, log: context.log, limits }, events, sessionId),
        ),
      clean: (text) => context.redactor().line(text),
      close: () => upstream.close(),
    };
  },
});

interface Endpoint {
  readonly address: UpstreamAddress;
  /** Path and query. */
  readonly path: string;
}

function socketEndpoint(
  { host, port, path = '/mcp' }: HttpConfig,
  hasTls: boolean,
  context: CompileContext,
): Endpoint | undefined {
  if (port !== undefined)
    context.at('port').report({
      code: 'AGW0105',
      message: 'a Unix socket has no port',
      help: 'remove `port`',
    });
  const address = parseAddress(host, context.at('host'));
  if (address === undefined) return undefined;
  return { address: hasTls ? { ...address, origin: 'https://localhost' } : address, path };
}

/** A URL without a path means /mcp, as everywhere in the configuration. */
function urlEndpoint(config: HttpConfig, hasTls: boolean, context: CompileContext): Endpoint | undefined {
  const url = endpointUrl(config, '/mcp', context, hasTls);
  return url && { address: { origin: url.origin }, path: url.pathname + url.search };
}
