import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { createLog } from '../../src/core/log.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { handleRequest } from '../../src/server/kernel/pipeline.ts';
import { clientOf } from '../../src/server/kernel/request/client-connection.ts';
import { HeaderList } from '../../src/server/kernel/request/header-list.ts';
import { type Reply, RequestContext } from '../../src/server/kernel/request/request-context.ts';
import { compileRuntime } from '../../src/server/runtime/runtime.ts';
import { routesConfig } from './routes.ts';

export interface PolicyRequest {
  readonly method?: string;
  /** Path and query, `/` by default. */
  readonly target?: string;
  /** In this order and spelling; `host: gateway.test` is added where there is none. */
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

export interface PolicyReply {
  readonly status: number;
  /** Lower-case names; fields of one name are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** Empty for a body that is a stream. */
  readonly text: string;
  /** The request headers as they are after the policies, for a backend. */
  readonly forwarded: HeaderList;
}

/** Policies that are compiled as those of a route. Leaving its scope closes them. */
export interface TestPolicies extends AsyncDisposable {
  /** Gives a request to the policies: their refusal, or the answer 200 `reached` of the route as they leave it. */
  handle(request?: PolicyRequest): Promise<PolicyReply>;
}

/**
 * Compiles policies from configuration and runs them without a socket: admission, policies and error replies are the
 * real ones, but no connection is made and nothing is logged. Tests of what is on the wire need `answeringGateway`.
 *
 * @param policies as under `policies` of a route
 * @throws Error with every diagnostic when the configuration has an error
 */
export function compilePolicies(policies: object, env: Record<string, string> = {}): TestPolicies {
  const yaml = routesConfig([{ policies: { directResponse: { body: 'reached' }, ...policies } }]);
  const { config, source, diagnostics } = loadConfigText(yaml, 'test.yaml', env);
  if (config === undefined) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  const log = createLog(
    { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
    'off',
    'text',
  );
  const compiled = compileRuntime({ config, source, log, folder: '/', env });
  const errors = compiled.diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  const [served] = compiled.runtime.gateways;
  if (served === undefined) throw new Error('there is no gateway');
  return {
    handle: async (request = {}) => {
      const context = contextOf(request);
      const reply = await handleRequest(context, served);
      return { ...shown(reply), forwarded: context.headers };
    },
    [Symbol.asyncDispose]: () => compiled.runtime.close(),
  };
}

/** What the listener makes of a request: here of one that nobody sent. */
function contextOf({ method = 'GET', target = '/', headers = {}, body = '' }: PolicyRequest): RequestContext {
  const message = new IncomingMessage(new Socket());
  message.method = method;
  message.url = target;
  Object.assign(message, { httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 });
  const all = {
    ...(Object.keys(headers).some((name) => name.toLowerCase() === 'host') ? {} : { host: 'gateway.test' }),
    ...headers,
    ...(body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  };
  for (const [name, value] of Object.entries(all)) {
    for (const each of [value].flat()) message.rawHeaders.push(name, String(each));
    message.headers[name.toLowerCase()] = String(value);
  }
  message.push(body === '' ? null : body);
  if (body !== '') message.push(null);
  return new RequestContext(
    message,
    Object.assign(new ServerResponse(message), { send: () => undefined }),
    'default',
    new HeaderList(message.rawHeaders),
    body === '' ? undefined : message,
    clientOf(message.socket),
  );
}

function shown({ status, headers, body }: Reply): Omit<PolicyReply, 'forwarded'> {
  const fields: Record<string, string> = {};
  for (let i = 0; i < headers.raw.length; i += 2) {
    const name = (headers.raw[i] as string).toLowerCase();
    const value = headers.raw[i + 1] as string;
    fields[name] = fields[name] === undefined ? value : `${fields[name]}, ${value}`;
  }
  const text =
    typeof body === 'string' ? body : body instanceof Uint8Array ? Buffer.from(body).toString() : '';
  return { status, headers: fields, text };
}
