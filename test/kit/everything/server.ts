import { McpServer } from '@modelcontextprotocol/server';
import { requestState } from './input-state.ts';
import { addPrompts } from './prompts.ts';
import { addResources } from './resources.ts';
import { addContentTools } from './tools-content.ts';
import { addInputTools } from './tools-input.ts';
import { addInputRoundTools } from './tools-input-rounds.ts';
import { addLiveTools } from './tools-live.ts';

/**
 * How one instance tells the outside world that something changed. Over stdio and in a 2025 session the
 * instance itself is connected; a 2026 HTTP instance lives for one request, so its news goes to the
 * listeners of the whole endpoint.
 */
export interface Announcer {
  toolsChanged(): void;
  promptsChanged(): void;
  resourceUpdated(uri: string): void;
}

/** What a group of tools, prompts or resources gets to register itself with. */
export interface Fixture {
  server: McpServer;
  announce: Announcer;
}

const capabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  completions: {},
  logging: {},
};

/**
 * One MCP server that holds everything the official conformance suite asks a server for, at 2025-11-25
 * and at 2026-07-28.
 *
 * @param announce where change notices go; default: out of this instance's own connection
 */
export function everythingServer(announce?: Announcer): McpServer {
  const server = new McpServer(
    { name: 'agctl-everything', version: '1.0.0' },
    { capabilities, requestState: { verify: requestState.verify } },
  );
  const fixture: Fixture = { server, announce: announce ?? ownConnection(server) };
  addContentTools(fixture);
  addLiveTools(fixture);
  addInputTools(fixture);
  addInputRoundTools(fixture);
  addPrompts(fixture);
  addResources(fixture);
  return server;
}

function ownConnection(server: McpServer): Announcer {
  return {
    toolsChanged: () => server.sendToolListChanged(),
    promptsChanged: () => server.sendPromptListChanged(),
    // The peer may be gone by now; then nobody is left to tell.
    resourceUpdated: (uri) => void server.server.sendResourceUpdated({ uri }).catch(() => undefined),
  };
}
