import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { env } from 'node:process';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort } from '../../kit/ports.ts';
import { until } from '../../kit/until.ts';

const cost = z.object({ cost: z.number().nullable(), tokens: z.number().nullable() });
const spanSchema = z.object({
  name: z.string(),
  spanKind: z.string(),
  spanId: z.string(),
  parentId: z.string().nullable(),
  tokenCountPrompt: z.number().nullable(),
  tokenCountCompletion: z.number().nullable(),
  cumulativeTokenCountTotal: z.number().nullable(),
  costSummary: z.object({ prompt: cost, completion: cost, total: cost }).nullable(),
  input: z.object({ value: z.string() }).nullable(),
  output: z.object({ value: z.string() }).nullable(),
  attributes: z.string().transform((json) => z.record(z.string(), z.unknown()).parse(JSON.parse(json))),
  trace: z.object({ session: z.object({ sessionId: z.string() }).nullable() }),
});
/** A span as Phoenix shows it. */
export type ShownSpan = z.output<typeof spanSchema>;

const answer = z.object({
  data: z.object({
    projects: z.object({
      edges: z.array(
        z.object({
          node: z.object({ spans: z.object({ edges: z.array(z.object({ node: spanSchema })) }) }),
        }),
      ),
    }),
  }),
});

const COST = '{ cost tokens }';
const QUERY = `{ projects { edges { node { spans(first: 100) { edges { node {
  name spanKind spanId parentId tokenCountPrompt tokenCountCompletion cumulativeTokenCountTotal
  costSummary { prompt ${COST} completion ${COST} total ${COST} }
  input { value } output { value } attributes trace { session { sessionId } }
} } } } } } }`;

export interface Phoenix extends AsyncDisposable {
  readonly url: string;
  /** The spans of all projects, when there are as many as this. */
  spans(count: number): Promise<readonly ShownSpan[]>;
}

/** Phoenix with an empty database. */
export async function startPhoenix(): Promise<Phoenix> {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const folder = await temporaryFolder();
  const child = spawn(join(dirname(env['PHOENIX_PYTHON'] ?? ''), 'phoenix'), ['serve'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: folder.path,
    env: {
      ...env,
      PHOENIX_HOST: '127.0.0.1',
      PHOENIX_PORT: `${port}`,
      PHOENIX_GRPC_PORT: `${grpcPort}`,
      PHOENIX_WORKING_DIR: folder.path,
      PHOENIX_TELEMETRY_ENABLED: 'false',
    },
  });
  child.stdout.resume();
  const log = text(child.stderr);
  const url = `http://127.0.0.1:${port}`;
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error((await log).slice(-2000));
    const reply = await fetch(`${url}/healthz`).catch(() => undefined);
    return reply?.ok === true;
  };
  await until(isReady, 280_000, 200);
  const shown = async (): Promise<readonly ShownSpan[]> => {
    const reply = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: QUERY }),
    });
    const { projects } = answer.parse(await reply.json()).data;
    return projects.edges.flatMap(({ node }) => node.spans.edges.map((edge) => edge.node));
  };
  return {
    url,
    spans: async (count) => {
      let spans: readonly ShownSpan[] = [];
      await until(
        async () => {
          spans = await shown();
          return spans.length >= count;
        },
        60_000,
        200,
      );
      return spans;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null) await once(child, 'exit');
      await folder.remove();
    },
  };
}
