/** A variable or a member of one: what `agctl-expressions(7)` says of it, and what a typo is measured against. */
export interface Declaration {
  readonly type: ValueType;
  /** Its meaning in one line; `backticks` mark code. */
  readonly doc: string;
  /** The members it may have. Absent where they come from a client, a token, the file or another service. */
  readonly members?: Readonly<Record<string, Declaration>>;
  /** Members that configurations made for other gateways may name: accepted, and never set by this one. */
  readonly elsewhere?: readonly string[];
}

export type ValueType =
  | 'string'
  | 'int'
  | 'double'
  | 'bool'
  | 'bytes'
  | 'timestamp'
  | 'map'
  | 'list'
  | 'any'
  | 'string or bytes';

/** A tool, prompt or resource of an MCP target. */
const ITEM = {
  name: { type: 'string', doc: 'Its name as the target itself calls it; the URI of a resource.' },
  target: { type: 'string', doc: 'Name of the target that it belongs to.' },
} as const;

/** Of a tool that is called. What it gave is kept for the log only, and only where an expression reads it. */
const CALLED = {
  arguments: {
    type: 'map',
    doc: 'What it is called with, `{}` for nothing. Absent in rules while tools are listed.',
  },
  result: { type: 'any', doc: 'What it gave, unless that is too long to be kept: only in the log.' },
  error: { type: 'map', doc: '`code` and `message` of the JSON-RPC error of the call: only in the log.' },
} as const;

/** Classes of tokens, in a cost and in its rates. */
const TOKENS = {
  input: { type: 'double', doc: 'For tokens read that have no line of their own here.' },
  output: { type: 'double', doc: 'For tokens written that have no line of their own here.' },
  cacheRead: { type: 'double', doc: "For tokens read from the provider's cache." },
  cacheWrite: { type: 'double', doc: "For tokens written to the provider's cache." },
  reasoning: { type: 'double', doc: 'For tokens of reasoning.' },
  inputAudio: { type: 'double', doc: 'For tokens of recordings read.' },
  outputAudio: { type: 'double', doc: 'For tokens of recordings made.' },
} as const;

/** Every variable that some place of a configuration has: `PLACES` in `server/expressions/variables.ts` says which has which. */
export const ROOTS = {
  request: {
    type: 'map',
    doc: 'The request, after the policies that have run so far.',
    members: {
      method: { type: 'string', doc: 'HTTP method, such as `GET`.' },
      uri: { type: 'string', doc: '`http://`, host, path and query.' },
      host: { type: 'string', doc: 'Host that was asked for, lower case, with its port if one was given.' },
      scheme: { type: 'string', doc: 'Always `http`.' },
      path: { type: 'string', doc: 'Canonical path without the query.' },
      pathAndQuery: { type: 'string', doc: 'Path and query, with its `?`.' },
      version: { type: 'string', doc: 'HTTP version, such as `HTTP/1.1`.' },
      headers: {
        type: 'map',
        doc: 'Header fields by name, in any case: a string, or a list of strings for several lines.',
      },
      body: { type: 'bytes', doc: 'The whole body; absent when it is larger than the bound on buffers.' },
      bodyPrefix: { type: 'bytes', doc: 'The beginning of the body, up to the bound on buffers.' },
      startTime: { type: 'timestamp', doc: 'When the request arrived.' },
      endTime: { type: 'timestamp', doc: 'When the response had ended: only in the log.' },
    },
  },
  source: {
    type: 'map',
    doc: 'The peer of the connection. Headers of proxies never change it.',
    members: {
      address: { type: 'string', doc: 'IP address.' },
      port: { type: 'int', doc: 'Port.' },
      rawAddress: { type: 'string', doc: 'The same as `address`.' },
      rawPort: { type: 'int', doc: 'The same as `port`.' },
    },
    elsewhere: [
      'identity',
      'spiffeId',
      'subjectAltNames',
      'issuer',
      'subject',
      'subjectCn',
      'certificate',
      'unverifiedWorkload',
      'connectHeaders',
    ],
  },
  jwt: { type: 'map', doc: 'Claims of the validated token by name, such as `jwt.sub`.' },
  apiKey: { type: 'map', doc: "`metadata` of the caller's key by name." },
  extauthz: { type: 'map', doc: 'Values that `metadata` of `extAuthz` took from the reply, by name.' },
  proxy: {
    type: 'map',
    doc: 'What of the configuration serves the request.',
    members: {
      gateway: {
        type: 'map',
        doc: 'The gateway.',
        members: {
          name: {
            type: 'string',
            doc: 'Always `default`; `proxy.listener.name` is the name in the configuration.',
          },
          namespace: { type: 'string', doc: 'Always `default`.' },
        },
      },
      listener: {
        type: 'map',
        doc: 'The listener.',
        members: { name: { type: 'string', doc: 'Its name.' } },
      },
      route: {
        type: 'map',
        doc: 'The route.',
        members: { name: { type: 'string', doc: 'Its name; null while there is none.' } },
        elsewhere: ['namespace', 'kind', 'rule'],
      },
    },
    elsewhere: ['bind', 'requestProcessingDuration', 'upstreamDuration', 'responseProcessingDuration'],
  },
  backend: {
    type: 'map',
    doc: 'What answers the request.',
    members: {
      name: { type: 'string', doc: 'Address of the upstream, once it is called; null before.' },
      protocol: { type: 'string', doc: '`http`, `mcp` or `llm`.' },
    },
    elsewhere: ['type'],
  },
  response: {
    type: 'map',
    doc: 'The response to the client, or the reply that the place speaks of.',
    members: {
      code: { type: 'int', doc: 'HTTP status.' },
      headers: { type: 'map', doc: 'Header fields by name, as in `request.headers`.' },
      body: { type: 'string or bytes', doc: 'The body, as far as it was kept.' },
      bodyPrefix: { type: 'string or bytes', doc: 'The same as `body`.' },
    },
    elsewhere: ['grpcStatus'],
  },
  mcp: {
    type: 'map',
    doc: 'The MCP message. Rules see one of `tool`, `prompt`, `resource` and `task`: the item in question.',
    members: {
      methodName: { type: 'string', doc: 'Method of the message, such as `tools/call`.' },
      sessionId: { type: 'string', doc: "The session's id, shortened: only in the log." },
      tool: { type: 'map', doc: 'The tool.', members: { ...ITEM, ...CALLED } },
      prompt: { type: 'map', doc: 'The prompt.', members: ITEM },
      resource: { type: 'map', doc: 'The resource, or the template of resources.', members: ITEM },
      task: { type: 'map', doc: 'The task; its name is its id.', members: ITEM },
    },
  },
  llm: {
    type: 'map',
    doc: 'The call of a model.',
    members: {
      streaming: { type: 'bool', doc: 'Whether the client asked for a stream.' },
      requestModel: { type: 'string', doc: 'Model that the client asked for.' },
      responseModel: { type: 'string', doc: 'Model that the provider says has answered.' },
      provider: { type: 'string', doc: 'Name of the provider.' },
      inputTokens: { type: 'int', doc: 'Tokens that the model has read.' },
      outputTokens: { type: 'int', doc: 'Tokens that the model has written.' },
      totalTokens: { type: 'int', doc: 'The sum of both.' },
      cachedInputTokens: { type: 'int', doc: "Tokens read from the provider's cache." },
      cacheCreationInputTokens: { type: 'int', doc: "Tokens written to the provider's cache." },
      reasoningTokens: { type: 'int', doc: 'Tokens of reasoning.' },
      usageEstimated: { type: 'string', doc: 'Why the tokens are an estimate; absent when they are not.' },
      inputAudioTokens: { type: 'int', doc: 'Tokens of recordings read.' },
      outputAudioTokens: { type: 'int', doc: 'Tokens of recordings made.' },
      timeToFirstToken: { type: 'double', doc: 'Seconds until the first token.' },
      timePerOutputToken: { type: 'double', doc: 'Seconds for each token after the first.' },
      params: { type: 'map', doc: "The client's request, as it came." },
      cost: {
        type: 'map',
        doc: 'Price of the call in USD.',
        members: { total: { type: 'double', doc: 'The sum.' }, ...TOKENS },
      },
      prompt: {
        type: 'list',
        doc: 'What the model was sent, after guardrails: for each message its `role` and `content`, images left out.',
      },
      completion: {
        type: 'list',
        doc: 'What the client was given: a text for each choice, streams put together.',
      },
      toolCalls: {
        type: 'list',
        doc: 'Tools that the model asks to be called: for each its `id`, `name` and `arguments`.',
      },
      costRates: { type: 'map', doc: 'Prices in the catalog, by class of token.', members: TOKENS },
    },
    elsewhere: [
      'providerInputTokens',
      'inputImageTokens',
      'inputTextTokens',
      'outputImageTokens',
      'outputTextTokens',
      'providerTotalTokens',
      'serviceTier',
      'countTokens',
    ],
  },
  llmRequest: { type: 'map', doc: "The client's request to a model: its JSON, as it came." },
} as const satisfies Readonly<Record<string, Declaration>>;

export type Root = keyof typeof ROOTS;

/** Names of the declared members of a root: what provides the values must have these, and no others. */
export type MemberOf<R extends Root> = (typeof ROOTS)[R] extends { readonly members: infer M }
  ? keyof M & string
  : string;

/** Roots of other gateways. No place has them, and a message can say so. */
const ELSEWHERE = ['destination', 'extproc', 'mcpGuardrails', 'metadata', 'basicAuth', 'env'] as const;

/** All names of roots that a message may speak of. */
export const ROOT_NAMES: readonly string[] = [...Object.keys(ROOTS), ...ELSEWHERE];

/** What is declared at a path, such as `mcp.tool.name`; undefined for anything free-form or unknown. */
export function declarationOf(path: readonly string[]): Declaration | undefined {
  let members: Readonly<Record<string, Declaration>> | undefined = ROOTS;
  let found: Declaration | undefined;
  for (const name of path) {
    found = members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined;
    members = found?.members;
  }
  return found;
}

/** The member at the beginning of a path that this gateway never sets; undefined when there is none. */
export function foreignMember(path: readonly string[]): string | undefined {
  for (let length = 1; length < path.length; length++) {
    const name = path[length] as string;
    if (declarationOf(path.slice(0, length))?.elsewhere?.includes(name) === true)
      return path.slice(0, length + 1).join('.');
  }
  return undefined;
}
