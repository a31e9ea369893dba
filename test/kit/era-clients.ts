import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

// The official clients of both SDK generations, in every way in which they agree on a revision, behind one interface.

interface CallOptions {
  readonly onprogress?: (progress: { progress: number; total?: number }) => void;
  readonly signal?: AbortSignal;
}

/** A connected client. It answers elicitation, sampling and `roots/list`, and keeps what it was asked and told. */
export interface EraClient extends AsyncDisposable {
  readonly revision: string | undefined;
  tools(): Promise<string[]>;
  /** Resolves to the text of the result's first block. Log messages from level info on are requested. */
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<string>;
  read(uri: string): Promise<string>;
  prompt(name: string, args?: Record<string, string>): Promise<string>;
  complete(prompt: string, argument: string, typed: string): Promise<string[]>;
  /** Subscribes to a resource, and to changes of the lists of tools and prompts. */
  watch(uri: string): Promise<void>;
  /** Requests of servers: their methods. */
  readonly asked: string[];
  /** Notifications of changes: the method, and the URI of a resource. */
  readonly changes: string[];
  /** Data of log messages. */
  readonly logged: unknown[];
  /** What the client reports besides failed calls, as by a failed attempt to open its stream again. */
  readonly errors: string[];
}

const INFO = { name: 'client', version: '1' };
const CAPABILITIES = { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } };
const ROOTS = { roots: [{ uri: 'file:///root', name: 'root' }] };

/** The form is answered with what every form of the fixtures accepts. */
const ELICITED = {
  action: 'accept' as const,
  content: { name: 'Ada', color: 'red', username: 'ada', email: 'ada@a.test' },
};
const SAMPLED = {
  model: 'test',
  role: 'assistant' as const,
  content: { type: 'text' as const, text: 'sampled' },
};

const textOf = (block: unknown): string => (block as { text?: string }).text ?? JSON.stringify(block);

/** What both generations keep. */
function records() {
  const asked: string[] = [];
  const changes: string[] = [];
  const logged: unknown[] = [];
  const errors: string[] = [];
  return { asked, changes, logged, errors };
}

/** SDK 1: revisions up to 2025-11-25. */
async function firstSdk(url: string): Promise<EraClient> {
  const kept = records();
  const client = new Client1(INFO, CAPABILITIES);
  const answer = <T>(method: string, result: T): T => {
    kept.asked.push(method);
    return result;
  };
  client.setRequestHandler(ElicitRequestSchema, ({ method }) => answer(method, ELICITED));
  client.setRequestHandler(CreateMessageRequestSchema, ({ method }) => answer(method, SAMPLED));
  client.setRequestHandler(ListRootsRequestSchema, ({ method }) => answer(method, ROOTS));
  for (const schema of [ToolListChangedNotificationSchema, PromptListChangedNotificationSchema])
    client.setNotificationHandler(schema, ({ method }) => void kept.changes.push(method));
  client.setNotificationHandler(
    ResourceUpdatedNotificationSchema,
    ({ method, params }) => void kept.changes.push(`${method} ${params.uri}`),
  );
  client.setNotificationHandler(
    LoggingMessageNotificationSchema,
    ({ params }) => void kept.logged.push(params.data),
  );
  const transport = new Transport1(new URL(url));
  client.onerror = ({ message }) => void kept.errors.push(message);
  await client.connect(transport);
  if (client.getServerCapabilities()?.logging !== undefined) await client.setLoggingLevel('info');
  return {
    ...kept,
    revision: transport.protocolVersion,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}, options = {}) => {
      const { content } = await client.callTool({ name, arguments: args }, undefined, options);
      return textOf((content as unknown[])[0]);
    },
    read: async (uri) => textOf((await client.readResource({ uri })).contents[0]),
    prompt: async (name, args) =>
      textOf((await client.getPrompt({ name, arguments: args ?? {} })).messages.at(-1)?.content),
    complete: async (prompt, name, value) =>
      (await client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name, value } }))
        .completion.values,
    watch: async (uri) => void (await client.subscribeResource({ uri })),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

type Mode = 'legacy' | 'auto' | { pin: string };

/** SDK 2, which also has revision 2026-07-28. */
export const secondSdk =
  (mode: Mode) =>
  async (url: string): Promise<EraClient> => {
    const kept = records();
    const client = new Client2(INFO, { ...CAPABILITIES, versionNegotiation: { mode } });
    const answer = <T>(method: string, result: T): T => {
      kept.asked.push(method);
      return result;
    };
    client.setRequestHandler('elicitation/create', ({ method }) => answer(method, ELICITED));
    client.setRequestHandler('sampling/createMessage', ({ method }) => answer(method, SAMPLED));
    client.setRequestHandler('roots/list', ({ method }) => answer(method, ROOTS));
    for (const each of ['notifications/tools/list_changed', 'notifications/prompts/list_changed'] as const)
      client.setNotificationHandler(each, ({ method }) => void kept.changes.push(method));
    client.setNotificationHandler(
      'notifications/resources/updated',
      ({ method, params }) => void kept.changes.push(`${method} ${params.uri}`),
    );
    client.setNotificationHandler(
      'notifications/message',
      ({ params }) => void kept.logged.push(params.data),
    );
    client.onerror = ({ message }) => void kept.errors.push(message);
    await client.connect(new Transport2(new URL(url)));
    const isModern = client.getProtocolEra() === 'modern';
    if (!isModern && client.getServerCapabilities()?.logging !== undefined)
      await client.setLoggingLevel('info');
    const meta = isModern ? { _meta: { 'io.modelcontextprotocol/logLevel': 'info' } } : {};
    const listen = (uri: string): Promise<unknown> =>
      client.listen({ toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: [uri] });
    return {
      ...kept,
      revision: client.getNegotiatedProtocolVersion(),
      tools: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (name, args = {}, options = {}) =>
        textOf((await client.callTool({ name, arguments: args, ...meta }, options)).content[0]),
      read: async (uri) => textOf((await client.readResource({ uri })).contents[0]),
      prompt: async (name, args) =>
        textOf((await client.getPrompt({ name, arguments: args ?? {} })).messages.at(-1)?.content),
      complete: async (prompt, name, value) =>
        (await client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name, value } }))
          .completion.values,
      watch: async (uri) => void (await (isModern ? listen(uri) : client.subscribeResource({ uri }))),
      [Symbol.asyncDispose]: () => client.close(),
    };
  };

const SESSIONS = '2025-11-25';
const MODERN = '2026-07-28';

/** Each client, and the revision that it agrees on with a server of both eras. */
export const ERA_CLIENTS = [
  { client: 'SDK 1', connect: firstSdk, revision: SESSIONS },
  { client: 'SDK 2 (legacy)', connect: secondSdk('legacy'), revision: SESSIONS },
  { client: 'SDK 2 (auto)', connect: secondSdk('auto'), revision: MODERN },
  { client: 'SDK 2 (2026-07-28)', connect: secondSdk({ pin: MODERN }), revision: MODERN },
] as const;
