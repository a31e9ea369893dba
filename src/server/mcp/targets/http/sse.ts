import { z } from 'zod';
import { createUpstream } from '../../../transport/upstream/upstream.ts';
import { defineTarget, type Target } from '../../connection/target.ts';
import { endpointFields, targetEndpoint, unusableTarget } from '../endpoint.ts';
import { SseChannel } from './sse-channel.ts';

const schema = z
  .strictObject(endpointFields('event stream', 'https://host/sse'))
  .describe('A remote MCP server with the older HTTP+SSE transport (revision 2024-11-05).')
  .meta({ foreignNames: { url: 'host' } });

/** A server reached over HTTP+SSE. Each session has its own event stream. */
export const sse = defineTarget({
  key: 'sse',
  schema,
  hasPolicies: true,
  compile(name, config, context, { tls, credentials }): Target {
    const endpoint = targetEndpoint(config, '/sse', context, tls !== undefined);
    const { limits } = context.settings;
    if (endpoint === undefined) return unusableTarget(name, limits);
    const { address, url } = endpoint;
    const upstream = createUpstream(address, {
      meter: context.settings.callMeter('Primary', 'Mcp'),
      ...(tls !== undefined && { tls }),
    });
    const clean = (text: string): string => context.redactor().line(text);
    const target = { name, upstream, url, credentials, log: context.log, clean };
    return {
      name,
      limits,
      // The session is the event stream, which only this process has.
      resumable: false,
      endpoint: upstream.address,
      open: (events) => Promise.resolve(new SseChannel(target, events)),
      clean,
      close: () => upstream.close(),
    };
  },
});
