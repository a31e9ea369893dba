// mem0 (PyPI: mem0ai) as it runs without a network: turns are stored as they are, and embedded by the model that is given
// to the benchmark, through an endpoint with OpenAI's format.
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { root } from '../harness/processes.mjs';

const MAX_OUTPUT = 64 * 1024 * 1024;

/**
 * @param python an interpreter that has mem0ai
 * @returns for each question the indexes of turns, best first
 */
export async function mem0Rankings({ turns, questions }, embedder, python, folder) {
  const server = createServer(async (request, response) => {
    const { input } = await json(request);
    const vectors = await embedder.embed([input].flat());
    const data = vectors.map((vector, index) => ({ object: 'embedding', index, embedding: [...vector] }));
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ object: 'list', model: 'local', data, usage: { prompt_tokens: 0, total_tokens: 0 } }),
    );
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  try {
    const [sample] = await embedder.embed(['size']);
    const running = promisify(execFile)(python, [join(root, 'bench/memory/mem0_rankings.py')], {
      maxBuffer: MAX_OUTPUT,
    });
    running.child.stdin.end(
      JSON.stringify({
        turns,
        questions: questions.map(({ question }) => question),
        embeddings: `http://127.0.0.1:${server.address().port}/v1`,
        size: sample.length,
        folder,
      }),
    );
    return JSON.parse((await running).stdout);
  } finally {
    server.close();
  }
}
