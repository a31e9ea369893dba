import { mcpConfig } from './config.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { type Json, type McpSession, openSession, toolCall } from './mcp.ts';
import { type Answer, type HttpUpstream, httpUpstream } from './upstream.ts';

/** An OpenAPI document with these paths. */
export const openApi = (paths: object, rest: object = {}): Json => ({
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1.2.3' },
  paths,
  ...rest,
});

/** A text for the configuration file, in which a dollar sign would begin the name of a variable. */
export const literal = (text: string): string => text.replaceAll('$', '$$$$');

/** A gateway whose only target is an API with this document, the API, and a session. */
export interface ApiGateway extends AsyncDisposable {
  readonly api: HttpUpstream;
  readonly gate: TestGateway;
  readonly session: McpSession;
  /** The tools of the first page. */
  tools(): Promise<Json[]>;
  /** Calls a tool; returns the result, or the error. */
  call(name: string, args?: object): Promise<Json>;
}

interface ApiOptions {
  /** Members of `targets[].openapi` beside `schema` and `host`. */
  readonly target?: object;
  /** Further targets. */
  readonly targets?: readonly object[];
  readonly answer?: Answer;
  /** Policies of the route. */
  readonly policies?: object;
  readonly gateway?: TestGatewayOptions;
  /** Headers of the client. */
  readonly headers?: Record<string, string>;
}

export async function apiGateway(document: unknown, options: ApiOptions = {}): Promise<ApiGateway> {
  const api = await httpUpstream(options.answer);
  const schema = literal(typeof document === 'string' ? document : JSON.stringify(document));
  const targets = [
    { name: 'shop', openapi: { schema, host: `http://${api.address}`, ...options.target } },
    ...(options.targets ?? []),
  ];
  const gate = await gateway(mcpConfig(targets, { route: { policies: options.policies } }), options.gateway);
  const session = await openSession(`${gate.url}/mcp`, options.headers);
  let id = 100;
  return {
    api,
    gate,
    session,
    tools: async () => (await session.request('tools/list')).result.tools,
    call: async (name, args = {}) => {
      const { result, error } = await session.send(toolCall(id++, name, args));
      return result ?? error;
    },
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await api.close();
    },
  };
}
