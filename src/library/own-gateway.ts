import { transportOf } from '../server/config/plan/protocols.ts';
import type { GatewayRuntime } from '../server/runtime/runtime.ts';
import type { ConfigProblem, Gateway, GatewayEvents, RequestOrigin } from './api.ts';
import type { GatewayConfig } from './config-types.ts';
import { configError, problemsOf } from './problems.ts';
import type { Program } from './start-program.ts';

/** Where requests without a connection seem to be sent. */
const WITHOUT_PORTS = 'http://localhost';

const LOOPBACK = '127.0.0.1';
const ANY = '0.0.0.0';

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
      running.listeners.map(({ gateway, port }) => [
        gateway.plan.name,
        sockets === 'none'
          ? WITHOUT_PORTS
          : originOf(gateway, port, sockets === 'free' ? LOOPBACK : gateway.plan.address),
      ]),
    );
  }

  get warnings(): readonly ConfigProblem[] {
    const { live, isFile } = this.#program;
    return problemsOf(live.served.runtime.redactor().value(live.served.diagnostics), isFile);
  }

  async handle(request: Request, { address = '', port = 0, gateway }: RequestOrigin = {}): Promise<Response> {
    const { running } = this.#program;
    const name = gateway ?? running.listeners[0]?.gateway.plan.name ?? '';
    return running.handle(request, { address, port }, name);
  }

  // A property, so that it can be passed on without its object.
  readonly fetch = (input: string | URL | Request, init?: RequestInit): Promise<Response> =>
    this.handle(new Request(typeof input === 'string' ? new URL(input, this.url) : input, init));

  async reload(config?: GatewayConfig): Promise<void> {
    const { live, source, isFile } = this.#program;
    if (config !== undefined && isFile)
      throw new TypeError(
        'the gateway was created from a file: change the file, and call reload() without arguments',
      );
    const before = source.text;
    if (config !== undefined) source.text = JSON.stringify(config);
    if (await live.reload()) return;
    source.text = before;
    const { failure } = live.state;
    if (failure === undefined) throw new Error('the gateway is closed');
    throw configError(failure.diagnostics, live.served.source, live.env, isFile);
  }

  on<Name extends keyof GatewayEvents>(
    name: Name,
    listener: (event: GatewayEvents[Name]) => void,
  ): () => void {
    return this.#program.listeners.on(name, listener);
  }

  close(): Promise<void> {
    const { running, live } = this.#program;
    this.#closed ??= Promise.all([running.close(), live.close()]).then(() => undefined);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** An address that is all addresses of the machine is reached on loopback. */
function originOf({ plan: { listeners } }: GatewayRuntime, port: number, address: string = ANY): string {
  const scheme = transportOf({ listeners }) === 'TLS' ? 'https' : 'http';
  const host = address === ANY ? LOOPBACK : address === '::' ? '::1' : address;
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
