import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { MCP_HEADERS } from '../../kit/mcp.ts';
import { callMessage, memoryAdapter, type TestAdapter } from '../../kit/memory-adapter.ts';
import { ask } from '../client.ts';
import { must } from '../judge.ts';
import { heard } from '../mcp/caller.ts';
import { oneOf, pieces } from '../mutate.ts';
import { fuzz, type Kind, type Trial } from '../runner.ts';

const TIME = '2026-01-01T00:00:00Z';

interface Tool {
  readonly name: string;
  readonly args: object;
  /** What a good backend answers. */
  readonly good: object;
}

const TOOLS: readonly Tool[] = [
  {
    name: 'search_knowledge',
    args: { query: 'x' },
    good: {
      results: [
        {
          id: 'e1',
          name: 'Setup',
          type: 'doc_chunk',
          content: 'Install it.',
          score: 0.91,
          cosine: 0.5,
          metadata: { path: 'a.md' },
        },
      ],
      count: 1,
      filtered: 3,
      bestScore: 0.91,
      minScore: 0.7,
      embedder: 'hash-v2/128',
      tookMs: 2,
    },
  },
  {
    name: 'store_episodic',
    args: { sessionId: 's', role: 'user', content: 'x' },
    good: { id: 't1', sessionId: 's', agentId: 'unknown', role: 'user', createdAt: TIME },
  },
  {
    name: 'query_graph',
    args: { entityId: 'e1' },
    good: {
      root: { id: 'e1', name: 'a', type: 'workspace' },
      nodes: [{ id: 'e2', name: 'b', type: 'doc', depth: 1, metadata: {} }],
      edges: [{ fromId: 'e1', toId: 'e2', relationType: 'has', weight: 1 }],
      truncated: false,
    },
  },
];

const ERROR = { error: { code: 'not_found', message: 'no such entity' } };

interface Lane {
  readonly adapter: TestAdapter;
  reply: { readonly status: number; readonly bytes: readonly Buffer[] };
}

/** Adapters with a backend of their own. */
async function adapters(run: (trial: Trial, lane: Lane) => Promise<void>): Promise<Kind<Lane>> {
  const lanes: Lane[] = [];
  const started = await Promise.all(
    [0, 1, 2, 3].map(async (index) => {
      const backend = createServer((request, response) => {
        request.resume().on('end', async () => {
          const { status, bytes } = (lanes[index] as Lane).reply;
          response.writeHead(status, { 'content-type': 'application/json' });
          for (const piece of bytes) {
            if (piece.length > 0) response.write(piece);
            await new Promise(setImmediate);
          }
          response.end();
        });
      });
      await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
      return { backend, adapter: await memoryAdapter(url, { rules: {} }) };
    }),
  );
  for (const { adapter } of started) lanes.push({ adapter, reply: { status: 500, bytes: [] } });
  return {
    lanes,
    run,
    internalErrors: () => 0,
    internalError: () => '',
    [Symbol.asyncDispose]: async () => {
      for (const { adapter, backend } of started) {
        await adapter[Symbol.asyncDispose]();
        backend.closeAllConnections();
        await new Promise((resolve) => backend.close(resolve));
      }
    },
  };
}

fuzz('memory backend answers to the adapter', 100, () =>
  adapters(async (trial, lane) => {
    const { random } = trial;
    const { adapter } = lane;
    const { name, args, good } = oneOf(random, TOOLS);
    const status = random(5) === 0 ? oneOf(random, [201, 400, 401, 404, 409, 429, 500, 503]) : 200;
    const body =
      random(15) === 0
        ? oneOf(random, ['', 'null', '{', '<p>', '5'])
        : trial.mutate(status >= 400 ? ERROR : good);
    lane.reply = { status, bytes: pieces(random, Buffer.from(body)) };
    trial.note(`${name}: HTTP ${status}`);
    trial.note(body);
    const answered = await ask(`${adapter.url}/mcp`, {
      headers: MCP_HEADERS,
      body: JSON.stringify(callMessage(name, args)),
    });
    const { response, isFailure } = heard(answered, 1);
    // A tool says what failed in its result, so that models can read it.
    must(!isFailure, 'a protocol error', response);
    const { result } = response;
    if (result.isError === true) {
      must(result.content[0]?.text !== '', 'no reason for the client', result);
      must((adapter.log as string[]).length > 0, 'nothing in the log');
    }
    (adapter.log as string[]).length = 0;
  }),
);
