import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
  UnauthorizedError as Unauthorized2,
} from '@modelcontextprotocol/client';
import { UnauthorizedError as Unauthorized1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect } from 'vitest';
import { OAuthMemory } from './oauth-client.ts';

// The official MCP clients of both generations, signing in.

const INFO = { name: 'client', version: '1' };

/** A call that both generations can make at the `echo` tool of a stub server, and its answer. */
const CALL = { name: 'echo', arguments: { message: 'signed in' } };
export const SAID = [{ type: 'text', text: 'signed in' }];

/** One generation, at one server. */
export interface SdkClient {
  readonly memory: OAuthMemory;
  /** Connects without a token: finds out where to sign in, registers, and would send the browser there. */
  refuse(): Promise<void>;
  /** Takes what the browser came back with and fetches the tokens. */
  finish(returned: URLSearchParams): Promise<void>;
  /** Connects with the tokens and calls the tool, after `before`; returns the content of the answer. */
  call(before?: () => void): Promise<unknown>;
}

export function firstGeneration(server: string): SdkClient {
  const memory = new OAuthMemory();
  const url = new URL(server);
  const transport = new Transport1(url, { authProvider: memory });
  return {
    memory,
    refuse: () => expect(new Client1(INFO).connect(transport)).rejects.toBeInstanceOf(Unauthorized1),
    finish: (returned) => transport.finishAuth(returned.get('code') as string),
    async call(before) {
      const client = new Client1(INFO);
      await client.connect(new Transport1(url, { authProvider: memory }));
      before?.();
      const { content } = await client.callTool(CALL);
      await client.close();
      return content;
    },
  };
}

export function secondGeneration(server: string): SdkClient {
  const memory = new OAuthMemory();
  const url = new URL(server);
  const transport = new Transport2(url, { authProvider: memory });
  return {
    memory,
    refuse: () => expect(new Client2(INFO).connect(transport)).rejects.toBeInstanceOf(Unauthorized2),
    finish: (returned) => transport.finishAuth(returned),
    async call(before) {
      const client = new Client2(INFO);
      await client.connect(new Transport2(url, { authProvider: memory }));
      before?.();
      const { content } = await client.callTool(CALL);
      await client.close();
      return content;
    },
  };
}
