import { type ClientConnection, canonicalAddress } from '../kernel/request/client-connection.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import type { Declaration } from './cel/declarations.ts';
import { CelStruct, toCel } from './cel/values.ts';
import { CERTIFICATE_MEMBERS, type CertificateMembers, certificateMembers } from './client-certificate.ts';
import { defined, defineVariable, type MemberOf, type Members } from './variable.ts';

// Variables that describe where a request comes from and has arrived, rather than the request.

const SOURCE = {
  type: 'map',
  doc: 'The client. Only proxies in `config.http.trustedProxies` can name another one than that of the connection.',
  members: {
    address: { type: 'string', doc: 'IP address.' },
    port: { type: 'int', doc: 'Port; 0 if a proxy has not named it.' },
    rawAddress: { type: 'string', doc: 'IP address of the connection.' },
    rawPort: { type: 'int', doc: 'Port of the connection.' },
    ...CERTIFICATE_MEMBERS,
  },
  elsewhere: ['unverifiedWorkload', 'connectHeaders'],
} as const satisfies Declaration;

const DESTINATION = {
  type: 'map',
  doc: "The gateway's side of the connection.",
  members: {
    address: { type: 'string', doc: 'IP address that the client has connected to.' },
    port: { type: 'int', doc: 'Port that the client has connected to.' },
    hostname: { type: 'string', doc: 'Host name that the client has asked for with TLS (SNI).' },
  },
} as const satisfies Declaration;

const ENVIRONMENT = {
  type: 'map',
  doc: 'Where the gateway runs in Kubernetes, according to environment variables. No other variables are available.',
  members: {
    podName: { type: 'string', doc: 'The environment variable `POD_NAME`.' },
    namespace: { type: 'string', doc: 'The environment variable `NAMESPACE`.' },
    gateway: { type: 'string', doc: 'The environment variable `GATEWAY`.' },
  },
} as const satisfies Declaration;

class SourceView extends CelStruct {
  readonly #ctx: Pick<RequestContext, 'client'>;

  constructor(ctx: Pick<RequestContext, 'client'>) {
    super();
    this.#ctx = ctx;
  }

  field(name: MemberOf<typeof SOURCE>): unknown {
    const { client } = this.#ctx;
    switch (name) {
      case 'address':
        return client.address;
      case 'port':
        return client.port;
      case 'rawAddress':
        return (client.peer ?? client).address;
      case 'rawPort':
        return (client.peer ?? client).port;
      default:
        return toCel(this.#certificate()?.[name]);
    }
  }

  fields(): readonly string[] {
    // Without a trusted proxy, the others are the same.
    const own = this.#ctx.client.peer === undefined ? [] : ['rawAddress', 'rawPort'];
    const certificate = Object.entries(this.#certificate() ?? {}).filter(([, value]) => value !== undefined);
    return ['address', 'port', ...own, ...certificate.map(([name]) => name)];
  }

  #certificate(): CertificateMembers | undefined {
    const { certificate } = this.#ctx.client.tls ?? {};
    return certificate && certificateMembers(certificate);
  }
}

/** The variable `source` of a connection without a request. */
export const sourceOf = (client: ClientConnection): CelStruct => new SourceView({ client });

export const sourceVariable = defineVariable('source', SOURCE, (ctx) => new SourceView(ctx));

/** The variable `destination` of a connection without a request. */
export function destinationOf(client: ClientConnection): unknown {
  const { localAddress, localPort } = client.local;
  return toCel(
    defined<Members<typeof DESTINATION>>({
      address: localAddress === undefined ? undefined : canonicalAddress(localAddress),
      port: localPort,
      hostname: client.tls?.serverName,
    }),
  );
}

export const destinationVariable = defineVariable('destination', DESTINATION, ({ client }) =>
  destinationOf(client),
);

export const environmentVariable = defineVariable('env', ENVIRONMENT, environment);

/** `env`, which is the same for all requests. */
export function environment(): unknown {
  const { env } = process;
  return toCel(
    defined<Members<typeof ENVIRONMENT>>({
      podName: env['POD_NAME'] || undefined,
      namespace: env['NAMESPACE'] || undefined,
      gateway: env['GATEWAY'] || undefined,
    }),
  );
}
