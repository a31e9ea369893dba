import { z } from 'zod';
import { createUpstream, type Upstream } from '../../transport/upstream.ts';
import { defineTarget, type Target } from '../target.ts';
import { endpointFields, endpointUrl, unusableTarget } from './endpoint.ts';
import { HttpChannel } from './http-channel.ts';

const schema = z
  .strictObject(endpointFields('MCP endpoint', 'https://host/mcp'))
  .describe('A remote MCP server, reached over Streamable HTTP.')
  .meta({ foreignNames: { url: 'host' } });

/** A server reached over Streamable HTTP. All sessions share its connections. */
export const mcp = defineTarget({
  key: 'mcp',
  schema,
  compile(name, config, context): Target {
    // A URL without a path means /mcp, as everywhere in the configuration.
    const url = endpointUrl(config, '/mcp', context);
    const { limits } = context.settings;
    if (url === undefined) return unusableTarget(name, limits);
    const upstream: Upstream = createUpstream(
      { origin: url.origin },
      { meter: context.settings.callMeter('Primary', 'Mcp') },
    );
    return {
      name,
      limits,
      resumable: true,
      relatesMessages: true,
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
