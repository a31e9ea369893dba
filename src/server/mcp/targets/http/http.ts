import { z } from 'zod';
import { createUpstream, type Upstream } from '../../../transport/upstream/upstream.ts';
import { defineTarget, type Target } from '../../connection/target.ts';
import { endpointFields, targetEndpoint, unusableTarget } from '../endpoint.ts';
import { HttpChannel } from './http-channel.ts';

const schema = z
  .strictObject(endpointFields('MCP endpoint', 'https://host/mcp'))
  .describe('A remote MCP server, reached over Streamable HTTP.')
  .meta({ foreignNames: { url: 'host' } });

/** A server reached over Streamable HTTP. All sessions share its connections. */
export const mcp = defineTarget({
  key: 'mcp',
  schema,
  hasPolicies: true,
  compile(name, config, context, { tls, credentials }): Target {
    const { limits } = context.settings;
    const endpoint = targetEndpoint(config, '/mcp', context, tls !== undefined);
    if (endpoint === undefined) return unusableTarget(name, limits);
    const upstream: Upstream = createUpstream(endpoint.address, {
      meter: context.settings.callMeter('Primary', 'Mcp'),
      ...(tls !== undefined && { tls }),
    });
    const clean = (text: string): string => context.redactor().line(text);
    const target = { name, upstream, url: endpoint.url, credentials, log: context.log, limits, clean };
    return {
      name,
      limits,
      resumable: true,
      relatesMessages: true,
      endpoint: upstream.address,
      open: (events, sessionId) => Promise.resolve(new HttpChannel(target, events, sessionId)),
      clean,
      close: () => upstream.close(),
    };
  },
});
