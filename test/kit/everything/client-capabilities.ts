import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Fixture } from './server.ts';

/** Whether the client said that it has `name`: with the request since 2026-07-28, at the handshake before. */
export function clientHas(
  name: 'sampling' | 'elicitation',
  { server }: Fixture,
  ctx: ServerContext,
): boolean {
  const envelope = ctx.mcpReq.envelope as Record<string, ClientCapabilities | undefined> | undefined;
  const declared = envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities();
  return declared?.[name] !== undefined;
}
