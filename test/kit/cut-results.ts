import { expect } from 'vitest';
import type { Connect } from './both-eras.ts';
import { chaos, mcpConfig } from './config.ts';
import { gateway } from './gateway.ts';
import type { Json, McpReply } from './mcp.ts';

// Results of tools over `maxResultTokens`, and what callers read of them.

export const LIMIT = 100;
export const BYTES = LIMIT * 4;

export type Caller = Awaited<ReturnType<Connect>>;

export const limitedTo = (maxResultTokens: number | object, target = chaos('a')) => ({
  ...target,
  tools: { maxResultTokens },
});

export async function opened(
  connect: Connect,
  targets: object[] = [limitedTo(LIMIT)],
  parts?: Parameters<typeof mcpConfig>[1],
) {
  const gate = await gateway(mcpConfig(targets, parts));
  const url = `${gate.url}/mcp`;
  return { gate, url, caller: await connect(url), [Symbol.asyncDispose]: () => gate.close() };
}

/** Calls the tool that returns this result. */
export const give = (caller: Caller, result: object, name = 'give'): Promise<McpReply> =>
  caller.call(name, { result });

export const texts = (...all: string[]) => ({ content: all.map((text) => ({ type: 'text', text })) });

export const read = (caller: Caller, uri: string): Promise<McpReply> => caller.ask('resources/read', { uri });

/** Numbered lines, so that a part that is missing or repeated shows. */
export const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index} of the result\n`).join('');

export const NEXT = /agctl:\/\/results\/[\w-]+\/\d+/;

/** Reads a cut result to its end, as a model does that follows the URIs in the texts. Returns the shown text and all parts. */
export async function whole(caller: Caller, { content }: Json): Promise<string[]> {
  const note = content.findLast(({ type }: Json) => type === 'text').text;
  const parts: string[] = [content[0].text];
  for (let next = NEXT.exec(note)?.[0]; next !== undefined; ) {
    const { result, error } = await read(caller, next);
    expect(error).toBeUndefined();
    const [{ uri, mimeType, text }] = result.contents;
    expect([uri, mimeType, result.contents.length]).toEqual([next, 'text/plain', 1]);
    const end = text.lastIndexOf('\n[agctl] ');
    parts.push(text.slice(0, end));
    next = NEXT.exec(text.slice(end))?.[0];
  }
  return parts;
}
