import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NO_AWS } from '../../kit/aws.ts';
import { environment } from '../../kit/environment.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import type { Answered } from '../client.ts';
import { ask } from '../client.ts';
import { logReader, must, TRIAL_FIELD } from '../judge.ts';
import { pieces, type Random } from '../mutate.ts';
import type { Kind, Trial } from '../runner.ts';
import type { ApiKey } from './answers.ts';
import { type ClientKey, REQUESTS } from './clients.ts';

/** What a provider answers to the next calls. */
export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly bytes: Buffer;
  /** Cuts the bytes at random places. */
  readonly random?: Random;
}

/** A model of a fake provider, and the format of its clients. */
export interface LlmLane {
  readonly client: ClientKey;
  /** Format of the provider's API that serves the client: one API of a provider may be that of the client. */
  api: ApiKey;
  readonly model: string;
  readonly url: string;
  /** Whether guardrails check responses. */
  readonly isGuarded: boolean;
  reply: Reply;
}

type Provider = readonly [provider: unknown, params?: object];

const custom = (type: ApiKey): Provider => [{ custom: { formats: [{ type }] } }];

const PROVIDERS: readonly Provider[] = [
  ['openai', { apiKey: 'k' }],
  ['anthropic', { apiKey: 'k' }],
  custom('responses'),
  custom('generateContent'),
  ['bedrock', { awsRegion: 'eu-west-1' }],
  ['gemini', { apiKey: 'k' }],
  ['azure', { apiKey: 'k' }],
];

const CLIENTS: readonly ClientKey[] = ['completions', 'messages', 'responses', 'generateContent'];

const MASK = { regex: { action: 'mask', rules: [{ builtin: 'email' }, { pattern: 'sk-[a-z0-9]{20,}' }] } };

/** Members of `config`: prices for every model, and a record of all requests. */
const CONFIG = {
  adminAddr: 'off',
  connectionTerminationDeadline: '100ms',
  database: { url: 'sqlite://./requests.db' },
  modelCatalog: [
    {
      inline: {
        providers: Object.fromEntries(
          ['openai', 'anthropic', 'gcp.gemini', 'aws.bedrock', 'custom'].map((name) => [
            name,
            { models: { 'model-1': { rates: { input: '1', output: '2', cacheRead: '0.1' } } } },
          ]),
        ),
      },
    },
  ],
};

/** The API that a path belongs to. */
const apiOf = (path: string): ApiKey =>
  path.includes('/converse')
    ? 'converse'
    : path.includes(':generateContent') || path.includes(':streamGenerateContent')
      ? 'generateContent'
      : path.endsWith('/messages')
        ? 'messages'
        : path.endsWith('/responses')
          ? 'responses'
          : 'completions';

export interface LlmBench {
  /** Calls the model of a lane; the body is that of a correct client unless another one is given. */
  call(trial: Trial, lane: LlmLane, isStream: boolean, body?: string): Promise<Answered>;
  /** Fails unless the log says why a call failed and, unless it is the fault of the client, at which provider. */
  explained(trial: Trial, lane: LlmLane, isOfClient?: boolean): Promise<void>;
}

export async function llmKind(
  run: (trial: Trial, lane: LlmLane, bench: LlmBench) => Promise<void>,
  uses: (lane: LlmLane) => boolean = () => true,
): Promise<Kind<LlmLane>> {
  const lanes: LlmLane[] = [];
  const server = createServer((request, response) => {
    const lane = lanes[Number(request.url?.split('/')[1])];
    request.resume().on('end', async () => {
      if (lane === undefined) return response.writeHead(404).end();
      lane.api = apiOf(request.url ?? '');
      const { status, type, bytes, random } = lane.reply;
      response.writeHead(status, { 'content-type': type, 'retry-after': '0' });
      for (const piece of random === undefined ? [bytes] : pieces(random, bytes)) {
        if (piece.length > 0) response.write(piece);
        if (random !== undefined) await new Promise(setImmediate);
      }
      return response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const drafts = PROVIDERS.flatMap(([provider, params], at) =>
    CLIENTS.map((client, index) => ({ provider, params, client, isGuarded: (at + index) % 2 === 0 })),
  );
  const models = drafts.map(({ provider, params, isGuarded }, index) => ({
    name: `m${index}`,
    provider,
    ...(isGuarded && { guardrails: { request: [MASK], response: [MASK] } }),
    params: {
      model: 'model-1',
      baseUrl: `${origin}/${index}${provider === 'bedrock' ? '' : '/v1'}`,
      ...params,
    },
  }));
  const folder = await temporaryFolder();
  const env = environment({ ...NO_AWS, AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' });
  const yaml = JSON.stringify({
    config: CONFIG,
    frontendPolicies: {
      accessLog: {
        add: { ...TRIAL_FIELD, completion: 'llm.completion', prompt: 'llm.prompt' },
        database: { payloads: 'full' },
      },
    },
    llm: { port: 0, models },
  });
  const gate = await gateway(yaml, { folder: folder.path });
  lanes.push(
    ...drafts.map(
      ({ client, isGuarded }, index): LlmLane => ({
        client,
        api: 'completions',
        isGuarded,
        model: `m${index}`,
        url: gate.url,
        reply: { status: 500, type: 'text/plain', bytes: Buffer.from('no reply') },
      }),
    ),
  );
  const log = logReader(gate);
  const bench: LlmBench = {
    async call(trial, { client, model, url }, isStream, body) {
      const { path, body: good } = REQUESTS[client](model, isStream);
      return ask(url + path, {
        headers: { 'content-type': 'application/json', 'x-trial': trial.name },
        body: body ?? JSON.stringify(good),
      });
    },
    async explained(trial, { model }, isOfClient = false) {
      const lines = await log.lines(trial.name, 1);
      const line = JSON.stringify(lines);
      must(
        lines.some(
          (fields) => (fields['error'] ?? fields['error.type'] ?? fields['error.detail'] ?? '') !== '',
        ),
        'no reason in the log',
        line,
      );
      must(
        isOfClient ||
          lines.some(
            (fields) => fields['gen_ai.request.model'] === model || fields['endpoint'] !== undefined,
          ),
        'the log does not name the model or the provider',
        line,
      );
    },
  };
  await Promise.all(
    lanes.map(({ client, model, url }) => {
      const { path, body } = REQUESTS[client](model, false);
      const headers = { 'content-type': 'application/json' };
      return ask(url + path, { headers, body: JSON.stringify(body) });
    }),
  );
  return {
    lanes: lanes.filter(uses),
    run: (trial, lane) => run(trial, lane, bench),
    internalErrors: log.internalErrors,
    internalError: log.internalError,
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      env[Symbol.dispose]();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await folder.remove();
    },
  };
}
