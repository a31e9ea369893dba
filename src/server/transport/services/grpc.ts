import { createRequire } from 'node:module';
import type { Client, MethodDefinition } from '@grpc/grpc-js';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { CallMeter } from '../../kernel/observer.ts';
import { parseAddress } from '../upstream/upstream.ts';
import {
  type BegunCall,
  callUnary,
  connectWithin,
  type GrpcCallOptions,
  type GrpcStream,
  type GrpcStreamHandler,
  type GrpcStreamOptions,
  openStream,
} from './grpc-call.ts';
import type { Service } from './service-reference.ts';

/** Optional peer dependencies, because one of their dependencies has an install script (docs/decisions/0028). */
const GRPC = '@grpc/grpc-js';
const LOADER = '@grpc/proto-loader';
/** The ranges of `peerDependencies`. */
const VERSIONS = `${GRPC}@1 ${LOADER}@0.8`;

/** A service as protobuf.js describes it (JSON descriptors), with its full name. */
export interface ServiceDescriptor {
  readonly name: string;
  readonly descriptor: object;
}

type Methods = Readonly<Record<string, MethodDefinition<object, object>>>;

/** A service whose messages are encoded elsewhere. */
interface EncodedService {
  readonly methods: Methods;
}

export interface GrpcServiceOptions {
  readonly maxBytes: number;
  readonly meter: CallMeter;
}

/** A client of one gRPC service. Calls share a connection, which is opened on demand. */
export interface GrpcService {
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  /** Calls a unary method. Rejects with an `Error` that names the gRPC status, and with the reason of the signal. */
  call(method: string, request: object, options: GrpcCallOptions): Promise<unknown>;
  /** Opens a bidirectional call, which is cancelled with `signal`. `metadata`: texts that are not valid are omitted. */
  stream(method: string, handler: GrpcStreamHandler, options: GrpcStreamOptions): GrpcStream;
  close(): Promise<void>;
}

/**
 * Creates the client of a service. A missing package or an invalid address is reported, and the result is undefined.
 * Responses have at most `maxBytes` bytes.
 */
export function createGrpcService(
  { host, at, connection }: Service,
  service: ServiceDescriptor | EncodedService,
  { maxBytes, meter }: GrpcServiceOptions,
): GrpcService | undefined {
  const found = parseAddress(host, at);
  const packages = loadPackages(at);
  if (found === undefined || packages === undefined) return undefined;
  const { grpc, loader } = packages;
  const methods = 'methods' in service ? service.methods : methodsOf(service, loader);
  const { origin, socketPath } = found;
  const url = new URL(origin);
  const { tls, authorization, connectTimeout } = connection;
  const isTls = url.protocol === 'https:' || tls !== undefined;
  const authority = `${url.hostname}:${url.port || (isTls ? '443' : '80')}`;
  const address = socketPath === undefined ? authority : `unix:${socketPath}`;
  const credentials = isTls
    ? grpc.credentials.createSsl(tls?.ca ?? null, tls?.key ?? null, tls?.cert ?? null, {
        ...(tls?.rejectUnauthorized === false && { rejectUnauthorized: false }),
        ...(tls?.checkServerIdentity && { checkServerIdentity: tls.checkServerIdentity }),
      })
    : grpc.credentials.createInsecure();
  const client: Client = new grpc.Client(
    socketPath === undefined ? `dns:${authority}` : address,
    credentials,
    {
      'grpc.max_receive_message_length': maxBytes,
      'grpc.initial_reconnect_backoff_ms': LIMITS.retryDelayMin,
      'grpc.max_reconnect_backoff_ms': LIMITS.retryDelayMax,
      // Only the address of the configuration counts, as for other upstreams.
      'grpc.enable_http_proxy': 0,
      ...(tls?.servername !== undefined && { 'grpc.ssl_target_name_override': tls.servername }),
      'grpc.service_config_disable_resolution': 1,
    },
  );
  const begin = (method: string, { span }: Pick<GrpcCallOptions, 'span'>): BegunCall => {
    const definition = methods?.[method];
    if (definition === undefined) throw new Error(`the service has no method ${method}`);
    const { path } = definition;
    const callSpan = span?.call(
      path.slice(1),
      { 'rpc.system': 'grpc', 'rpc.method': path.slice(1) },
      address,
    );
    const metadata = new grpc.Metadata();
    if (callSpan !== undefined) metadata.set('traceparent', callSpan.traceparent);
    if (authorization !== undefined) metadata.set('authorization', authorization);
    return {
      client,
      definition,
      metadata,
      meter,
      span: callSpan,
      since: performance.now(),
      statusText: (code) => `gRPC status ${grpc.status[code] ?? code}`,
    };
  };
  return {
    address,
    async call(method, request, options) {
      const begun = begin(method, options);
      if (connectTimeout !== undefined) await connectWithin(client, connectTimeout);
      return callUnary(begun, request, options);
    },
    stream(method, handler, options) {
      const begun = begin(method, options);
      const connected = connectTimeout === undefined ? undefined : connectWithin(client, connectTimeout);
      return openStream(begun, handler, { ...options, connected });
    },
    close() {
      client.close();
      return Promise.resolve();
    },
  };
}

function methodsOf({ name, descriptor }: ServiceDescriptor, loader: Packages['loader']): Methods | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the descriptors are in this program.
  return loader.fromJSON(descriptor, { keepCase: true, defaults: true, oneofs: true })[name] as
    | Methods
    | undefined;
}

interface Packages {
  readonly grpc: typeof import('@grpc/grpc-js');
  readonly loader: typeof import('@grpc/proto-loader');
}

/** Loads the packages when the first service is configured; they take longer to load than everything else. */
function loadPackages(context: CompileContext): Packages | undefined {
  const require = createRequire(import.meta.url);
  try {
    return { grpc: require(GRPC), loader: require(LOADER) };
  } catch {
    context.report({
      code: 'AGW0402',
      message: 'gRPC services need packages that are not installed',
      help: `run \`npm install ${VERSIONS}\` where agctl is installed, with \`--global\` if it is installed globally`,
    });
    return undefined;
  }
}
