import { built } from './built.ts';
import { chaos } from './config.ts';
import { gateway, type TestGateway } from './gateway.ts';
import { completion, llmProvider } from './llm-provider.ts';
import { INITIALIZE, MCP_HEADERS } from './mcp.ts';
import { type HttpReply, send } from './send.ts';

/** The built pages of the admin UI. */
export const ADMIN_PAGES = built('web/admin');

/** A gateway with some of everything, and an admin server with its pages. */
export interface AdminUi extends AsyncDisposable {
  readonly gate: TestGateway;
  /** Address of the pages, without a slash at the end: `http://127.0.0.1:1234/ui`. */
  readonly url: string;
  /** Requests of each kind: answered, refused by a rule, failed, of a model, of an MCP client. */
  traffic(): Promise<void>;
  get(path: string, headers?: Record<string, string>): Promise<HttpReply>;
}

const COSTS = {
  providers: { openai: { models: { 'acme-mini': { rates: { input: '0.6', output: '2.4' } } } } },
};

export async function adminUi({ port }: { readonly port?: number } = {}): Promise<AdminUi> {
  // The name of the model comes back as it was sent.
  const provider = await llmProvider((_, response, { body }) => {
    const { model } = JSON.parse(Buffer.from(body, 'latin1').toString('utf8')) as { model: string };
    response.writeHead(200, { 'content-type': 'application/json' }).end(completion('Hello.', { model }));
  });
  const gate = await gateway(configOf(provider.address), {
    admin: true,
    webApp: ADMIN_PAGES,
    ...(port === undefined ? {} : { adminPort: port }),
  });
  const get = (path: string, headers: Record<string, string> = {}): Promise<HttpReply> =>
    send(`${gate.url}${path}`, { headers });
  return {
    gate,
    url: `${gate.admin}/ui`,
    get,
    traffic: async () => {
      await get('/files/readme.txt');
      await get('/files/other.txt');
      await get('/private/a', { 'x-team': 'blue' });
      await get('/private/b', { 'x-team': 'red' });
      await get('/gone');
      await get('/nowhere');
      await post(gate.url, '/mcp', INITIALIZE);
      const chat = { model: 'acme-mini', messages: [{ role: 'user', content: 'Hi' }] };
      await post(`http://127.0.0.1:${gate.ports[1]}`, '/v1/chat/completions', chat);
    },
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await provider.close();
    },
  };
}

function post(origin: string, path: string, body: object): Promise<HttpReply> {
  return send(`${origin}${path}`, { method: 'POST', headers: MCP_HEADERS, body: JSON.stringify(body) });
}

/** An MCP server, by a command without the path of this machine: it is in pictures. */
function target(name: string): object {
  const { stdio } = chaos(name);
  return { name, stdio: { ...stdio, cmd: 'node' } };
}

function configOf(provider: string): string {
  const at = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];
  const routes = [
    {
      name: 'tools',
      matches: at('/mcp'),
      backends: [{ mcp: { targets: [target('files'), target('notes')] } }],
    },
    { name: 'files', matches: at('/files'), policies: { directResponse: { body: 'text' } } },
    {
      name: 'private',
      matches: at('/private'),
      policies: {
        authorization: {
          rules: ['request.method == "GET"', 'request.headers["x-team"] in ["blue", "green"]'],
        },
        directResponse: { body: 'secret plans' },
      },
    },
    // Nobody listens on port 9.
    { name: 'gone', matches: at('/gone'), backends: [{ host: '127.0.0.1:9' }] },
  ];
  const models = [{ name: '*', provider: 'oaiCompat', params: { baseUrl: `http://${provider}/v1` } }];
  return JSON.stringify({
    config: {
      adminAddr: 'off',
      connectionTerminationDeadline: '100ms',
      modelCatalog: [{ inline: JSON.stringify(COSTS) }],
    },
    gateways: { default: { port: 0, routes } },
    llm: { port: 0, models },
  });
}
