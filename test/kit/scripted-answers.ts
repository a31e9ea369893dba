// What a scripted MCP server (`scripted-server.ts`) answers. Run with the answers as JSON, it is such a server on stdin and stdout.
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import type { Json } from './mcp.ts';

/** Texts that answer requests, by method or by `tools/call NAME`, written as they are. */
export type Answers = Readonly<Record<string, string | readonly string[]>>;

const RESULTS: Readonly<Record<string, (params: Json) => object>> = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: {}, prompts: {}, tasks: { list: {} } },
    serverInfo: { name: 'scripted', version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 't', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'called' }] }),
};

/**
 * The texts that answer a message. `answers` has them by method; `@id` stands for the id of the request, `@digits` for it without
 * quotes, `@token` for its progress token and `@version` for the revision that it asks for.
 */
export function textsFor(answers: Answers, { id, method, params }: Json): string[] {
  const scripted = answers[`${method} ${params?.name}`] ?? answers[method];
  if (scripted !== undefined)
    return [scripted].flat().map((text) =>
      text
        .replaceAll('@id', JSON.stringify(id) ?? 'null')
        .replaceAll('@digits', String(id))
        .replaceAll('@token', JSON.stringify(params?._meta?.progressToken ?? null))
        .replaceAll('@version', JSON.stringify(params?.protocolVersion ?? null)),
    );
  if (id === undefined || method === undefined) return [];
  const result = RESULTS[method];
  const error = { code: -32601, message: `no method ${method}` };
  return [JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result: result(params ?? {}) } : { error }) })];
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const answers = JSON.parse(process.argv[2] ?? '{}');
  for await (const line of createInterface({ input: process.stdin }))
    for (const text of textsFor(answers, JSON.parse(line))) process.stdout.write(`${text}\n`);
}
