/** Sample variables for expressions, in the form of a trace. */
export const SAMPLES: readonly {
  readonly name: string;
  readonly state: Readonly<Record<string, unknown>>;
}[] = [
  {
    name: 'A tool call by a person',
    state: {
      request: {
        method: 'POST',
        path: '/mcp',
        uri: 'http://gateway.example/mcp',
        host: 'gateway.example',
        headers: { 'content-type': 'application/json', 'user-agent': 'example/1.0' },
      },
      source: { address: '10.0.0.7', port: 51544 },
      jwt: {
        sub: 'alice',
        iss: 'https://idp.example/realms/demo',
        realm_access: { roles: ['default-roles-demo', 'mcp-user'] },
      },
      mcp: { methodName: 'tools/call', tool: { name: 'echo', target: 'everything' } },
    },
  },
  {
    name: 'A call of a model',
    state: {
      request: {
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json', 'x-team': 'search' },
      },
      source: { address: '10.0.0.7', port: 51544 },
      llmRequest: {
        model: 'gpt-4o-mini',
        max_tokens: 4096,
        temperature: 0.9,
        messages: [{ role: 'user', content: 'hi' }],
      },
      llm: {
        requestModel: 'gpt-4o-mini',
        provider: 'openai',
        inputTokens: 12,
        outputTokens: 34,
        totalTokens: 46,
      },
    },
  },
  {
    name: 'A request without credentials',
    state: {
      request: { method: 'GET', path: '/files/report.pdf', headers: { accept: '*/*' } },
      source: { address: '192.168.1.20', port: 40112 },
    },
  },
];

/** Common expressions, each with its sample. */
export const EXAMPLES: readonly {
  readonly what: string;
  readonly expression: string;
  readonly sample: number;
}[] = [
  { what: 'has a role', expression: '"mcp-user" in jwt.realm_access.roles', sample: 0 },
  { what: 'only some tools', expression: 'mcp.tool.name in ["echo", "add"]', sample: 0 },
  { what: 'a claim that may be missing', expression: 'has(jwt.email) ? jwt.email : jwt.sub', sample: 0 },
  { what: 'a header, or another value', expression: 'default(request.headers["x-team"], "none")', sample: 1 },
  {
    what: 'bounded token count',
    expression: 'llmRequest.max_tokens > 1024 ? 1024 : llmRequest.max_tokens',
    sample: 1,
  },
  { what: 'from the private network', expression: 'source.address.startsWith("10.")', sample: 2 },
];
