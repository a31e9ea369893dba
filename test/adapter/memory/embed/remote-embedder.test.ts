import { describe, expect, test } from 'vitest';
import { embedderFrom } from '../../../../src/adapter/memory/embed/from-environment.ts';
import { type Answer, type HttpUpstream, httpUpstream } from '../../../kit/upstream.ts';

const KEY = 'sk-very-secret-1';

interface Call {
  readonly model: string;
  readonly input: readonly string[];
  readonly dimensions: number;
  readonly encoding_format: string;
}

const vectorFor = (text: string, length = 128): number[] =>
  Array.from({ length }, (_, index) => (index === text.length % 128 ? 3 : 0));

function answering(
  change: (data: { index: number; embedding: unknown }[]) => unknown = (data) => data,
): Answer {
  return (_, response, received) => {
    const { input } = JSON.parse(received.body) as Call;
    const data = input.map((text, index) => ({ index, embedding: vectorFor(text) }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: change(data) }));
  };
}

async function withService<T>(
  answer: Answer,
  use: (env: Record<string, string>, service: HttpUpstream) => Promise<T>,
): Promise<T> {
  await using service = await httpUpstream(answer);
  return await use({ EMBEDDINGS_URL: `http://${service.address}`, EMBEDDING_API_KEY: KEY }, service);
}

async function failure(answer: Answer, env: Record<string, string> = {}): Promise<Error> {
  return withService(answer, async (base) => {
    const embedder = await embedderFrom({ ...base, EMBEDDING_DIMENSIONS: '128', ...env });
    const error = await embedder.embed(['text']).then(
      () => new Error('it did not fail'),
      (caught: Error) => caught,
    );
    await embedder.close();
    expect(error.message).not.toContain(KEY);
    return error;
  });
}

describe('the remote embedder', () => {
  test('the remote embedder sends at most 64 texts per call, asks for the configured dimensions and returns unit vectors in order', async () => {
    await withService(
      answering((data) => data.reverse()),
      async (env, service) => {
        const embedder = await embedderFrom({
          ...env,
          EMBEDDING_MODEL: 'small',
          EMBEDDING_DIMENSIONS: '128',
        });
        const seen: number[] = [];
        const texts = Array.from({ length: 150 }, (_, index) => 'x'.repeat((index % 127) + 1));
        texts[70] = '  ';
        const vectors = await embedder.embed(texts, undefined, (done) => seen.push(done));
        const calls = service.received.map(({ body }) => JSON.parse(body) as Call);
        expect(calls.map(({ input }) => input.length)).toEqual([64, 64, 21]);
        expect(calls[0]).toMatchObject({ model: 'small', dimensions: 128, encoding_format: 'float' });
        expect(service.received[0]).toMatchObject({ method: 'POST', target: '/v1/embeddings' });
        expect(service.received[0]?.headers['authorization']).toBe(`Bearer ${KEY}`);
        expect(vectors).toHaveLength(150);
        for (const [index, vector] of vectors.entries())
          expect(vector.indexOf(1), `text ${index}`).toBe(index === 70 ? -1 : (texts[index] ?? '').length);
        expect(seen).toEqual([64, 129, 150, 150]);
        expect(embedder.id).toBe('small/128');
        await embedder.close();
      },
    );
  });

  test('the remote embedder retries temporary failures and gives up at the third attempt', async () => {
    let calls = 0;
    await withService(
      (request, response, received) => {
        calls += 1;
        if (calls < 3) response.writeHead(calls === 1 ? 503 : 429, { 'retry-after': '0' }).end('busy');
        else void answering()(request, response, received);
      },
      async (env) => {
        const embedder = await embedderFrom(env);
        expect(await embedder.embed(['text'])).toHaveLength(1);
        await embedder.close();
      },
    );
    let refusals = 0;
    const error = await failure((_, response) => {
      refusals += 1;
      response.writeHead(503).end(KEY);
    });
    expect(refusals).toBe(3);
    expect(error.message).toMatch(/^the embedding service at 127\.0\.0\.1:\d+ answered 503$/);
  });

  test('the remote embedder does not retry permanent failures, and its error explains what to check', async () => {
    let calls = 0;
    const error = await failure((_, response) => {
      calls += 1;
      response.writeHead(401).end(`wrong key ${KEY}`);
    });
    expect([calls, error.message.replace(/:\d+ /, ' ')]).toEqual([
      1,
      'the embedding service at 127.0.0.1 answered 401: check EMBEDDING_API_KEY',
    ]);
  });

  test.each([
    [
      'sent embeddings of 1536 numbers instead of 128',
      answering((data) => data.map((one) => ({ ...one, embedding: vectorFor('x', 1536) }))),
    ],
    [
      'sent embeddings of 127 numbers',
      answering((data) => data.map((one) => ({ ...one, embedding: vectorFor('x', 127) }))),
    ],
    ['sent 0 embeddings for 1 texts', answering(() => [])],
    ['wrong indexes', answering((data) => data.map((one) => ({ ...one, index: 7 })))],
    [
      'something other than numbers',
      answering((data) => data.map((one) => ({ ...one, embedding: Array(128).fill('1') }))),
    ],
    ['of length zero', answering((data) => data.map((one) => ({ ...one, embedding: Array(128).fill(0) })))],
    ['did not send a list', ((_, response) => response.end('<html>')) as Answer],
  ])('the remote embedder rejects a response whose vectors are invalid: %s', async (problem, answer) => {
    expect((await failure(answer)).message).toContain(problem);
  });

  test('the remote embedder truncates longer vectors only when configured', async () => {
    const long = answering((data) => data.map((one) => ({ ...one, embedding: vectorFor('xxx', 256) })));
    await withService(long, async (env) => {
      const embedder = await embedderFrom({
        ...env,
        EMBEDDING_DIMENSIONS: '128',
        EMBEDDING_TRUNCATE: 'true',
      });
      const [vector] = await embedder.embed(['xxx']);
      expect([vector?.length, vector?.indexOf(1)]).toEqual([128, 3]);
      await embedder.close();
    });
  });

  test('the remote embedder takes the length of the model by default, and refuses another one later', async () => {
    let length = 1024;
    const answer: Answer = (...args) =>
      answering((data) => data.map((one) => ({ ...one, embedding: vectorFor('xxx', length) })))(...args);
    await withService(answer, async (env, service) => {
      const embedder = await embedderFrom({ ...env, EMBEDDING_MODEL: 'large' });
      expect(embedder.id).toBe('large/native');
      expect((await embedder.embed(['xxx', ' '])).map((vector) => vector.length)).toEqual([1024, 1024]);
      expect(JSON.parse(service.received[0]?.body ?? '')).not.toHaveProperty('dimensions');
      length = 768;
      await expect(embedder.embed(['xxx'])).rejects.toThrow(/768 numbers after some of 1024/);
      await embedder.close();
    });
  });

  test('the remote embedder speaks the protocol of Ollama at /api/embed', async () => {
    const ollama: Answer = (_, response, { body }) => {
      const { input } = JSON.parse(body) as Call;
      response.end(JSON.stringify({ embeddings: input.map((text) => vectorFor(text, 384)) }));
    };
    await withService(ollama, async (env, service) => {
      const url = `${env['EMBEDDINGS_URL']}/api/embed`;
      const embedder = await embedderFrom({ ...env, EMBEDDINGS_URL: url, EMBEDDING_MODEL: 'all-minilm' });
      const [first, second] = await embedder.embed(['x', 'xx']);
      expect([first?.length, first?.indexOf(1), second?.indexOf(1)]).toEqual([384, 1, 2]);
      expect(JSON.parse(service.received[0]?.body ?? '')).toEqual({
        model: 'all-minilm',
        input: ['x', 'xx'],
        truncate: true,
      });
      await embedder.close();
    });
  });

  test('the remote embedder tries the vector of a query once', async () => {
    let calls = 0;
    const busy: Answer = (_, response) => {
      calls += 1;
      response.writeHead(503).end();
    };
    await withService(busy, async (env) => {
      const embedder = await embedderFrom(env);
      await expect(embedder.embedQuery('text')).rejects.toThrow(/answered 503/);
      expect(calls).toBe(1);
      await embedder.close();
    });
  });

  test('the remote embedder stops immediately when aborted', async () => {
    const stop = new AbortController();
    await withService(
      () => stop.abort(new Error('closing')),
      async (env) => {
        const embedder = await embedderFrom(env);
        await expect(embedder.embed(['text'], stop.signal)).rejects.toThrow('closing');
        await embedder.close();
      },
    );
  });

  test('an unreachable remote embedder gives an error that says what to check', async () => {
    const env = await withService(answering(), async (base) => base);
    const embedder = await embedderFrom(env);
    await expect(embedder.embed(['text'])).rejects.toThrow(
      /cannot be reached \(ECONNREFUSED\): check EMBEDDINGS_URL/,
    );
    await embedder.close();
  });
});

describe('environment variables of the embedder', () => {
  test('the built-in embedder is the default', async () => {
    expect((await embedderFrom({ EMBEDDINGS_URL: '' })).id).toBe('hash-v2/128');
    expect((await embedderFrom({ MEMORY_EMBEDDER: 'onnx:x' }, 'builtin')).id).toBe('hash-v2/128');
  });

  test.each([
    [{ EMBEDDINGS_URL: 'ftp://x' }, /^EMBEDDINGS_URL: expected an http/],
    [{ EMBEDDINGS_URL: 'nowhere' }, /^EMBEDDINGS_URL: expected an http/],
    [{ EMBEDDINGS_URL: 'http://user:pw@x' }, /^EMBEDDINGS_URL: contains a name or password/],
    [{ EMBEDDING_API_KEY: KEY }, /^EMBEDDING_API_KEY: is set, but EMBEDDINGS_URL is not/],
    [{ EMBEDDINGS_URL: 'http://x', EMBEDDING_API_KEY: `${KEY}\n` }, /^EMBEDDING_API_KEY: contains a space/],
    [
      { EMBEDDINGS_URL: 'http://x', EMBEDDING_SCORE_PIVOT: '1' },
      /^EMBEDDING_SCORE_PIVOT: expected a number between/,
    ],
    [
      { EMBEDDINGS_URL: 'http://x', EMBEDDING_TRUNCATE: 'yes' },
      /^EMBEDDING_TRUNCATE: expected true or false/,
    ],
    [{ EMBEDDING_DIMENSIONS: '256' }, /^EMBEDDING_DIMENSIONS: is set, but EMBEDDINGS_URL is not/],
    [{ EMBEDDINGS_URL: 'http://x', EMBEDDING_DIMENSIONS: '0' }, /^EMBEDDING_DIMENSIONS: expected a whole/],
    [
      { MEMORY_EMBEDDER: 'onnx:' },
      /^MEMORY_EMBEDDER: expected builtin, the name of a model .* or onnx:FOLDER/,
    ],
    [{ MEMORY_EMBEDDER: 'onnx:x', EMBEDDINGS_URL: 'http://x' }, /^EMBEDDINGS_URL: is set, but the embedder/],
    [{ MEMORY_EMBEDDER: 'onnx:/no/such' }, /^embedder onnx:\/no\/such: no such folder/],
  ])('embedder settings %j are rejected with an error that names the variable', async (env, message) => {
    const error = await embedderFrom(env).then(
      () => new Error('it was accepted'),
      (caught: Error) => caught,
    );
    expect(error.message).toMatch(message);
    expect(String(error)).not.toContain(KEY);
  });

  test.each(['', '/', '/v1', '/v1/', '/v1/embeddings', '/base/v2', '/api/embed'])(
    'EMBEDDINGS_URL may end in %j',
    async (path) => {
      await withService(answering(), async (env, service) => {
        const embedder = await embedderFrom({
          ...env,
          EMBEDDINGS_URL: `${env['EMBEDDINGS_URL']}${path}`,
          EMBEDDING_SCORE_PIVOT: '0.5',
        });
        await embedder.embed(['text']);
        const expected = { '/base/v2': '/base/v2/embeddings', '/api/embed': '/api/embed' }[path];
        expect(service.received[0]?.target).toBe(expected ?? '/v1/embeddings');
        expect(embedder.scoring.pivot).toBe(0.5);
        await embedder.close();
      });
    },
  );

  // Half a million arguments of a function are more than its stack: the error said that the service cannot be reached.
  test('embeddings of more numbers than a store takes are refused, however many they are', async () => {
    for (const length of [16_001, 500_000]) {
      const answer = answering((data) => data.map((item) => ({ ...item, embedding: Array(length).fill(1) })));
      const error = await failure(answer, { EMBEDDING_DIMENSIONS: '' });
      expect(error.message).toContain(`sent embeddings of ${length} numbers, more than 16000`);
    }
  });

  // openai/openai-node#1542, vercel/ai#20359: services that return null or something else in place of an embedding.
  test.each([
    [[null]],
    [['text']],
    [[5]],
    [[[]]],
    [[{}]],
    [[{ embedding: null }]],
    [[{ embedding: [null] }]],
    [[{ embedding: { 0: 1 } }]],
    [[{ embedding: ['1'] }]],
    [[{ embedding: vectorFor('x'), index: 1 }]],
    [[{ embedding: vectorFor('x'), index: -1 }]],
    [[{ embedding: vectorFor('x'), index: 0.5 }]],
    [[{ embedding: vectorFor('x'), index: '0' }]],
    [[{ embedding: vectorFor('x'), index: null }]],
    [[]],
    [{}],
    [null],
    ['text'],
  ])('embeddings that are %j fail the call with what the service sent', async (data) => {
    const { message } = await failure(answering(() => data));
    expect(message).toMatch(
      /^the embedding service at \S+ (?:sent|did not send) (?:an |\d |a list of )?embedding/,
    );
  });

  test.each(['null', '5', '"text"', '[]', '{"data":{"0":{}}}', '{"embeddings":[null]}', 'no JSON'])(
    'an embedding response of %s fails the call with what the service sent',
    async (body) => {
      const { message } = await failure((_, response) => response.end(body));
      expect(message).toMatch(
        /^the embedding service at \S+ (?:did not send a list of embeddings|sent an embedding)/,
      );
    },
  );
});
