import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gateway } from '../../kit/gateway.ts';
import { completion } from '../../kit/llm-provider.ts';
import { MCP_HEADERS } from '../../kit/mcp.ts';
import { openApi } from '../../kit/openapi.ts';
import { type Answered, ask } from '../client.ts';
import { type LogReader, logReader, must, TRIAL_FIELD } from '../judge.ts';
import { judgedBody } from '../llm/clients.ts';
import { heard } from '../mcp/caller.ts';
import { oneOf, pieces } from '../mutate.ts';
import { fuzz, type Kind, type Trial } from '../runner.ts';

// Services that policies, guardrails and targets call over HTTP, each behind a route of its own.

interface Service {
  readonly name: string;
  /** What it answers if all is well. */
  readonly good: readonly object[];
  /** Sends a request that needs the service; fails unless the answer is one. True if the request was served. */
  call(url: string, trial: string): Promise<boolean>;
}

const JSON_TYPE = { 'content-type': 'application/json' };

/** The answer of a plain backend, or a status that says that there is none. */
function served({ status, text, isComplete }: Answered): boolean {
  must(isComplete, 'the connection was cut', text);
  if (status === 200) must(text === 'ok', 'another body than that of the backend', text);
  else must(status >= 400 && status <= 599, `HTTP ${status}`, text);
  return status === 200;
}

const plain =
  (path: string): Service['call'] =>
  async (url, trial) =>
    served(
      await ask(`${url}${path}`, {
        method: 'GET',
        headers: { 'x-trial': trial, authorization: `Bearer ${trial}` },
      }),
    );

const llm =
  (model: string): Service['call'] =>
  async (url, trial) => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: `Hi, ${trial}` }] });
    const answered = await ask(`${url}/v1/chat/completions`, {
      headers: { ...JSON_TYPE, 'x-trial': trial },
      body,
    });
    // The text of a rejection is the whole response (docs/guardrails.md).
    if (answered.status >= 400 && answered.headers['content-type']?.startsWith('text/plain') === true)
      return false;
    return judgedBody('completions', answered) === 'answered';
  };

/** Calls a tool without a session. */
const tool =
  (path: string, name: string, args: object): Service['call'] =>
  async (url, trial) => {
    const message = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: args } };
    const headers = { ...MCP_HEADERS, 'x-trial': trial };
    const { isFailure } = heard(await ask(`${url}${path}`, { headers, body: JSON.stringify(message) }), 7);
    return !isFailure;
  };

const SERVICES: readonly Service[] = [
  {
    name: 'extAuthz',
    good: [{ allowed: true, user: { name: 'ann', groups: ['a', 'b'], age: 5 }, node: 'n' }],
    call: plain('/authorized'),
  },
  {
    name: 'tokenExchange',
    good: [
      {
        access_token: 'issued',
        token_type: 'Bearer',
        expires_in: 300,
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        scope: 'a b',
      },
      { error: 'invalid_grant', error_description: 'no', error_uri: 'https://example.com' },
    ],
    call: plain('/exchanged'),
  },
  {
    name: 'webhook',
    good: [
      { action: {} },
      { action: { body: { messages: [{ role: 'user', content: 'changed' }] }, reason: 'x' } },
      { action: { body: { choices: [{ message: { role: 'assistant', content: 'changed' } }] } } },
      { action: { body: 'no', status_code: 403, reason: 'x' } },
    ],
    call: llm('webhook'),
  },
  {
    name: 'moderation',
    good: [
      {
        id: 'modr-1',
        model: 'omni',
        results: [{ flagged: false, categories: { hate: false }, category_scores: { hate: 0.1 } }],
      },
    ],
    call: llm('moderation'),
  },
  {
    name: 'azure',
    good: [
      {
        blocklistsMatch: [],
        categoriesAnalysis: [{ category: 'Hate', severity: 0 }],
      },
      {
        blocklistsMatch: [{ blocklistName: 'x', blocklistItemId: 'y', blocklistItemText: 'z' }],
        categoriesAnalysis: [{ category: 'Violence', severity: 6 }],
      },
      { error: { code: 'InvalidRequest', message: 'bad' } },
    ],
    call: llm('azure'),
  },
  {
    name: 'openapi',
    good: [
      { id: 1, name: 'thing', parts: [{ price: 1.5, tags: ['a'] }] },
      { type: 'about:blank', title: 'no', status: 404 },
    ],
    call: tool('/openapi', 'op', { query: { q: 'x' } }),
  },
  {
    name: 'mcpWebhook',
    good: [
      { action: {} },
      { action: { body: { params: { name: 'op', arguments: { query: { q: 'y' } } } } } },
      { action: { body: { result: { content: [{ type: 'text', text: 'changed' }] } } } },
      { action: { body: 'no', status_code: 403 } },
    ],
    call: tool('/guarded', 'op', { query: { q: 'x' } }),
  },
];

interface Lane {
  readonly service: Service;
  readonly url: string;
  readonly log: LogReader;
  reply: { readonly status: number; readonly type: string; readonly bytes: readonly Buffer[] };
}

const listening = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
};

async function servicesKind(run: (trial: Trial, lane: Lane) => Promise<void>): Promise<Kind<Lane>> {
  const lanes: Lane[] = [];
  const servers: Server[] = [];
  const addresses: string[] = [];
  for (const [index] of SERVICES.entries()) {
    const server = createServer((request, response) => {
      request.resume().on('end', async () => {
        const { status, type, bytes } = (lanes[index] as Lane).reply;
        response.writeHead(status, { 'content-type': type });
        for (const piece of bytes) {
          if (piece.length > 0) response.write(piece);
          await new Promise(setImmediate);
        }
        response.end();
      });
    });
    servers.push(server);
    addresses.push(await listening(server));
  }
  const backend = createServer((request, response) =>
    request
      .resume()
      .on('end', () =>
        request.url === '/api/things' || request.url?.startsWith('/api/things?') === true
          ? response.writeHead(200, JSON_TYPE).end('{"id":1}')
          : request.url?.startsWith('/v1/') === true
            ? response.writeHead(200, JSON_TYPE).end(completion('Hello.'))
            : response.end('ok'),
      ),
  );
  servers.push(backend);
  const host = await listening(backend);
  const [authz = '', exchange = '', webhook = '', moderation = '', azure = '', api = '', guard = ''] =
    addresses;
  const parameters = [{ name: 'q', in: 'query', schema: { type: 'string' } }];
  const schema = JSON.stringify(openApi({ '/things': { get: { operationId: 'op', parameters } } }));
  const mcp = (address: string) => ({
    mcp: {
      statefulMode: 'stateless',
      targets: [{ name: 'shop', openapi: { schema, host: `http://${address}/api` } }],
    },
  });
  const route = (path: string, backends: object[], policies: object = {}) => ({
    matches: [{ path: { pathPrefix: path } }],
    policies,
    backends,
  });
  const token = { oauthTokenExchange: { host: exchange, path: '/token' } };
  const extAuthz = {
    host: authz,
    protocol: { http: { metadata: { name: 'json(response.body).user.name', all: 'json(response.body)' } } },
  };
  const model = (name: string, guardrail: object, checksResponses = true) => ({
    name,
    provider: 'openai',
    guardrails: { request: [guardrail], ...(checksResponses && { response: [guardrail] }) },
    params: { apiKey: 'k', model: 'acme', baseUrl: `http://${host}/v1` },
  });
  const gate = await gateway(
    JSON.stringify({
      config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
      frontendPolicies: {
        accessLog: { add: { ...TRIAL_FIELD, name: 'extauthz.name', all: 'extauthz.all' } },
      },
      gateways: {
        default: {
          port: 0,
          routes: [
            route('/authorized', [{ host }], { extAuthz }),
            route('/exchanged', [{ host }], { backendAuth: token }),
            route('/openapi', [mcp(api)]),
            route('/guarded', [mcp(host)], {
              mcpGuardrails: { processors: [{ kind: 'webhook', host: guard }] },
            }),
          ],
        },
      },
      llm: {
        port: 0,
        models: [
          model('webhook', { webhook: { target: { host: webhook } } }),
          model(
            'moderation',
            {
              openAIModeration: { baseUrl: `http://${moderation}`, policies: { backendAuth: { key: 'k' } } },
            },
            false,
          ),
          model('azure', {
            azureContentSafety: {
              endpoint: `http://${azure}`,
              policies: { backendAuth: { key: 'k' } },
              analyzeText: {},
            },
          }),
        ],
      },
    }),
  );
  const log = logReader(gate);
  const urls = gate.ports.map((port) => `http://127.0.0.1:${port}`);
  const isLlm = (name: string): boolean => ['webhook', 'moderation', 'azure'].includes(name);
  for (const service of SERVICES)
    lanes.push({
      service,
      log,
      url: urls[isLlm(service.name) ? 1 : 0] ?? '',
      reply: { status: 500, type: 'text/plain', bytes: [] },
    });
  // Otherwise a mistake of this file would let every trial pass as a failed call.
  for (const lane of lanes) {
    const bytes = [Buffer.from(JSON.stringify(lane.service.good[0]))];
    lane.reply = { status: 200, type: 'application/json', bytes };
    must(await lane.service.call(lane.url, 'good'), `${lane.service.name} is not served`, gate.log.at(-1));
  }
  return {
    lanes,
    run,
    internalErrors: log.internalErrors,
    internalError: log.internalError,
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      for (const server of servers) server.closeAllConnections();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

fuzz('answers of services', 150, () =>
  servicesKind(async (trial, lane) => {
    const { random } = trial;
    const { service, url, log } = lane;
    const body =
      random(15) === 0
        ? oneOf(random, ['', 'null', '<p>', '{', '[]'])
        : trial.mutate(oneOf(random, service.good));
    const status = random(6) === 0 ? oneOf(random, [201, 204, 302, 400, 401, 403, 404, 429, 500, 503]) : 200;
    const type =
      random(10) === 0 ? oneOf(random, ['text/html', 'x', 'application/problem+json']) : 'application/json';
    lane.reply = { status, type, bytes: pieces(random, Buffer.from(status === 204 ? '' : body)) };
    trial.note(`${service.name}: HTTP ${status} ${type}`);
    trial.note(body);
    if (await service.call(url, trial.name)) return;
    const lines = await log.lines(trial.name, 1);
    const reasons = lines.flatMap((line) => [
      line['error'],
      line['mcp.error.message'],
      line['error.type'],
      line['error.detail'],
    ]);
    must(
      reasons.some((reason) => reason !== undefined && reason !== ''),
      'no reason in the log',
      lines,
    );
  }),
);
