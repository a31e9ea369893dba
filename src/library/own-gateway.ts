import { isIP } from 'node:net';
import { originOf } from '../server/config/plan/origin.ts';
import { canonicalAddress } from '../server/kernel/request/client-connection.ts';
import type { ConfigProblem, Gateway, GatewayEvents, RequestOrigin } from './api.ts';
import type { GatewayConfig } from './config-types.ts';
import { configError, problemsOf } from './problems.ts';
import { type Program, textOf } from './start-program.ts';

/** Where requests without a connection seem to be sent. */
const WITHOUT_PORTS = 'http://localhost';

const LOOPBACK = '127.0.0.1';

export class OwnGateway implements Gateway {
  readonly #program: Program;
  #closed: Promise<void> | undefined;

  constructor(program: Program) {
    this.#program = program;
  }

  get url(): string {
    return Object.values(this.urls)[0] ?? WITHOUT_PORTS;
  }

  get urls(): Readonly<Record<string, string>> {
    const { running, sockets } = this.#program;
    return Object.fromEntries(
      running.listeners.map(({ gateway, port }, index) => [
        gateway.plan.name,
        sockets === 'none'
          ? WITHOUT_PORTS + (index === 0 ? '' : `:${index}`)
          : originOf({
              protocol: gateway.plan.listeners[0]?.protocol,
              port,
              address: sockets === 'free' ? LOOPBACK : gateway.plan.address,
            }),
      ]),
    );
  }

  get warnings(): readonly ConfigProblem[] {
    const { live, isFile, sockets } = this.#program;
    const { runtime, diagnostics } = live.served;
    // Ports that everyone can reach are not opened.
    const own = sockets === 'configured' ? diagnostics : diagnostics.filter(({ code }) => code !== 'AGW0312');
    return problemsOf(runtime.redactor().value(own), isFile);
  }

  // Properties, so that they can be passed on without their object.

  readonly handle = async (request: Request, from: RequestOrigin = {}): Promise<Response> => {
    const { running } = this.#program;
    checkRequest(request);
    const client = { address: addressIn(from), port: from.port ?? 0 };
    const names = Object.keys(this.urls);
    const { gateway = names[0] ?? '' } = from;
    if (!names.includes(gateway))
      throw new TypeError(
        `the configuration has no gateway \`${gateway}\`: its gateways are ${names.join(', ')}`,
      );
    return running.handle(request, client, gateway);
  };

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(typeof input === 'string' ? new URL(input, this.url) : input, init);
    const { origin } = new URL(request.url);
    const byAddress = Object.entries(this.urls).find(([, url]) => url === origin)?.[0];
    // A path alone does not say which of two sections of their own is meant, but calls of models have paths of their own.
    const isModelCall = typeof input === 'string' && /^\/v1(?:beta)?\//.test(input) && this.#hasOwnPorts();
    const gateway = isModelCall ? 'llm' : byAddress;
    return this.handle(request, gateway === undefined ? {} : { gateway });
  };

  /** Whether `mcp` and `llm` each have a gateway of their own, which then has their name. */
  #hasOwnPorts(): boolean {
    const { gateways, mcp, llm } = this.#program.live.served.config;
    return Object.keys(gateways).length === 0 && mcp !== undefined && llm !== undefined;
  }

  readonly reload = async (config?: GatewayConfig): Promise<void> => {
    const { live, source, isFile } = this.#program;
    if (config !== undefined && isFile)
      throw new TypeError(
        'the gateway was created from a file: change the file, and call reload() without arguments',
      );
    const before = source.text;
    if (config !== undefined) source.text = textOf(config);
    if (await live.reload()) return;
    source.text = before;
    const { failure } = live.state;
    if (failure === undefined) throw new Error('the gateway is closed');
    throw configError(failure.diagnostics, live.served.source, live.env, isFile);
  };

  readonly on = <Name extends keyof GatewayEvents>(
    name: Name,
    listener: (event: GatewayEvents[Name]) => void,
  ): (() => void) => this.#program.listeners.on(name, listener);

  readonly close = (): Promise<void> => {
    this.#closed ??= this.#end();
    return this.#closed;
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(): Promise<void> {
    const { running, live, recorder } = this.#program;
    await Promise.all([running.close(), live.close()]);
    await recorder?.close();
  }
}

/** A program in JavaScript may hand over anything, such as a request of Express. @throws TypeError */
function checkRequest(request: Request): void {
  const { url, headers, signal, bodyUsed, body }: Partial<Request> = Object(request);
  if (typeof url !== 'string' || headers === undefined || signal === undefined)
    throw new TypeError('expected a Request of the Fetch API, such as `new Request(url, init)`');
  if (bodyUsed === true || body?.locked === true)
    throw new TypeError(
      'the body of the request was read before: hand over the request first, or `request.clone()`',
    );
}

/** The address of a client as ports see it; servers on both families have IPv4 clients as `::ffff:192.0.2.1`. @throws TypeError */
function addressIn({ address = '' }: RequestOrigin): string {
  const canonical = canonicalAddress(address);
  if (canonical !== '' && isIP(canonical) === 0)
    throw new TypeError(
      `\`address\`: expected an IP address without a port, found ${JSON.stringify(address)}`,
    );
  return canonical;
}
