import type { Json } from '../../kit/mcp.ts';
import { MODERN, metaKey } from '../../kit/modern.ts';

// What a good MCP server answers and sends, with every member that the gateway may read.

/** Stands for the id of the request, in documents that are changed before they are sent. */
const ID = '#id';

export const withId = (text: string, id: unknown): string =>
  text.replaceAll(`"${ID}"`, () => JSON.stringify(id));

const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  completions: {},
  logging: {},
  experimental: { x: { a: 1 } },
  extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html'] } },
};
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const SERVER = {
  name: 's',
  title: 'S',
  version: '1',
  websiteUrl: 'https://example.com',
  icons: [{ src: 'a' }],
};
const META = { 'example.com/x': { a: 1 }, progressToken: 1 };
const TASK = {
  taskId: '1',
  status: 'working',
  createdAt: '2026-01-01T00:00:00Z',
  lastUpdatedAt: '2026-01-01T00:00:00Z',
  ttl: 60_000,
  pollInterval: 100,
};
const CONTENT = [
  { type: 'text', text: 'an answer to ann@example.com', annotations: { audience: ['user'], priority: 0.5 } },
  { type: 'image', data: 'AAAA', mimeType: 'image/png' },
  { type: 'resource', resource: { uri: 'file:///x', mimeType: 'text/plain', text: 'bob@example.com' } },
  { type: 'resource_link', uri: 'file:///y', name: 'y', description: 'of y', size: 5 },
];

const tool = (name: string): object => ({
  name,
  title: 'T',
  description: 'says something',
  inputSchema: {
    type: 'object',
    properties: { a: { type: 'string', 'x-mcp-header': 'A' }, b: { $ref: '#/$defs/b' } },
    required: ['a'],
    $defs: { b: { type: ['number', 'null'] } },
  },
  outputSchema: { type: 'object', properties: { n: { type: 'number' } } },
  annotations: { readOnlyHint: true, title: 'T' },
  execution: { taskSupport: 'optional' },
  icons: [{ src: 'data:,', mimeType: 'image/png', sizes: ['any'] }],
  _meta: META,
});

const RESULTS: Readonly<Record<string, object>> = {
  'tools/list': { tools: [tool('t'), tool('u')], _meta: META },
  'tools/call': { content: CONTENT, structuredContent: { n: 1, of: ['x'] }, isError: false, _meta: META },
  'prompts/list': {
    prompts: [
      { name: 'p', title: 'P', description: 'd', arguments: [{ name: 'x', required: true }], _meta: META },
    ],
  },
  'prompts/get': {
    description: 'd',
    messages: CONTENT.map((content) => ({ role: 'user', content })),
    _meta: META,
  },
  'resources/list': {
    resources: [{ uri: 'file:///x', name: 'x', title: 'X', mimeType: 'text/plain', size: 1, _meta: META }],
  },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'file:///{x}', name: 'x', _meta: META }] },
  'resources/read': {
    contents: [
      { uri: 'file:///x', mimeType: 'text/plain', text: 'x', _meta: META },
      { uri: 'file:///y', blob: 'AAAA' },
    ],
  },
  'completion/complete': { completion: { values: ['a', 'b'], total: 2, hasMore: false }, _meta: META },
  'logging/setLevel': { _meta: META },
  'resources/subscribe': { _meta: META },
  'tasks/list': { tasks: [TASK, { ...TASK, taskId: '2' }] },
  'tasks/get': { ...TASK, _meta: META },
  'tasks/cancel': { ...TASK, status: 'cancelled' },
  'tasks/result': { content: CONTENT, _meta: { 'io.modelcontextprotocol/related-task': { taskId: '1' } } },
};

const MODERN_PARTS: Readonly<Record<string, object>> = {
  'tools/list': { ttlMs: 60_000, cacheScope: 'public' },
  'prompts/list': { ttlMs: 60_000, cacheScope: 'public' },
  'resources/list': { ttlMs: 60_000, cacheScope: 'private' },
  'resources/templates/list': { ttlMs: 0, cacheScope: 'public' },
  'resources/read': { ttlMs: 0, cacheScope: 'private' },
};

export type Era = 'sessions' | 'modern';

/** The result of a request as a server of that era gives it; undefined if it does not know the method. */
export function resultOf(era: Era, { method, params }: Json): object | undefined {
  if (era === 'sessions') {
    if (method === 'initialize')
      return {
        protocolVersion: params?.protocolVersion ?? '2025-11-25',
        capabilities: { ...CAPABILITIES, tasks: TASKS },
        serverInfo: SERVER,
        instructions: 'how to use it',
        _meta: META,
      };
    if (method === 'ping') return {};
    if (method === 'tools/call' && params?.task !== undefined) return { task: TASK, _meta: META };
    return RESULTS[method];
  }
  if (method === 'server/discover')
    return {
      resultType: 'complete',
      ttlMs: 60_000,
      cacheScope: 'public',
      supportedVersions: [MODERN],
      capabilities: CAPABILITIES,
      instructions: 'how to use it',
      _meta: { [metaKey('serverInfo')]: SERVER },
    };
  const result = RESULTS[method];
  if (result === undefined || method.startsWith('tasks/') || method === 'resources/subscribe')
    return undefined;
  return { resultType: 'complete', ...MODERN_PARTS[method], ...result };
}

/** What a call may answer instead, in 2026-07-28: questions to the client. */
export const INPUT_REQUIRED = {
  resultType: 'input_required',
  inputRequests: {
    who: {
      method: 'elicitation/create',
      params: {
        mode: 'form',
        message: 'who?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
      },
    },
    roots: { method: 'roots/list', params: {} },
    text: {
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 5 },
    },
  },
  requestState: 'abc',
  _meta: META,
};

export const ERROR = {
  code: -32042,
  message: 'the target refuses',
  data: { elicitations: [{ mode: 'url', elicitationId: 'e1', url: 'https://example.com', message: 'm' }] },
};

/** A response to a request, as JSON-RPC has it. */
export const response = (outcome: object): object => ({ jsonrpc: '2.0', id: ID, ...outcome });

/** What servers send without being asked. */
export const NOTIFICATIONS: readonly object[] = [
  {
    method: 'notifications/message',
    params: { level: 'info', logger: 'l', data: { text: 'x' }, _meta: META },
  },
  {
    method: 'notifications/progress',
    params: { progressToken: 1, progress: 1, total: 2, message: 'm', _meta: META },
  },
  { method: 'notifications/cancelled', params: { requestId: ID, reason: 'no', _meta: META } },
  { method: 'notifications/resources/updated', params: { uri: 'file:///x', title: 't', _meta: META } },
  { method: 'notifications/tools/list_changed', params: { _meta: META } },
  { method: 'notifications/prompts/list_changed' },
  { method: 'notifications/resources/list_changed', params: {} },
  { method: 'notifications/tasks/status', params: { ...TASK, _meta: META } },
  { method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } },
  {
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta: { [metaKey('subscriptionId')]: ID }, notifications: { toolsListChanged: true } },
  },
].map((message) => ({ jsonrpc: '2.0', ...message }));

/** What servers with sessions ask clients. */
export const REQUESTS: readonly object[] = [
  {
    method: 'sampling/createMessage',
    params: {
      messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }],
      modelPreferences: { hints: [{ name: 'm' }], costPriority: 0.5 },
      systemPrompt: 's',
      maxTokens: 5,
      _meta: META,
    },
  },
  {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: 'who?',
      requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      _meta: META,
    },
  },
  { method: 'roots/list', params: { _meta: META } },
  { method: 'ping' },
  { method: 'tasks/get', params: { taskId: '1' } },
  { method: 'example/unknown', params: { a: 1 } },
].map((message) => ({ jsonrpc: '2.0', id: 'r1', ...message }));
