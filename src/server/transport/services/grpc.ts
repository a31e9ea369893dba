import { createRequire } from 'node:module';
import type { Client, ClientUnaryCall, MethodDefinition, ServiceError } from '@grpc/grpc-js';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { CallMeter, RequestSpan } from '../../kernel/observer.ts';
import { parseAddress } from '../upstream/upstream.ts';
import type { ServiceConnection } from './service-policies.ts';

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

export interface GrpcCallOptions {
  /** Maximum time until the response, including the connection, in ms. */
  readonly timeout: number;
  readonly signal: AbortSignal;
  readonly span?: RequestSpan | undefined;
}

export interface GrpcServiceOptions {
  readonly maxBytes: number;
  readonly meter: CallMeter;
  readonly connection?: ServiceConnection;
}

/** A client of one gRPC service. Calls share a connection, which is opened on demand. */
export interface GrpcService {
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  /** Calls a unary method. Rejects with an `Error` that names the gRPC status, and with the reason of the signal. */
  call(method: string, request: object, options: GrpcCallOptions): Promise<unknown>;
  close(): Promise<void>;
}

/**
 * Creates the client of a service; `context` is that of its address. A missing package or an invalid address is reported,
 * and the result is undefined. Responses have at most `maxBytes` bytes.
 */
export function createGrpcService(
  host: string,
  { name, descriptor }: ServiceDescriptor,
  context: CompileContext,
  { maxBytes, meter, connection = {} }: GrpcServiceOptions,
): GrpcService | undefined {
  const found = parseAddress(host, context);
  const packages = loadPackages(context);
  if (found === undefined || packages === undefined) return undefined;
  const { grpc, loader } = packages;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the descriptors are in this program.
  const methods = loader.fromJSON(descriptor, { keepCase: true, defaults: true, oneofs: true })[name] as
    | Readonly<Record<string, MethodDefinition<object, object>>>
    | undefined;
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
  return {
    address,
    call(method, request, { timeout, signal, span }) {
      const definition = methods?.[method];
      if (definition === undefined) return Promise.reject(new Error(`no method ${name}/${method}`));
      const { path, requestSerialize, responseDeserialize } = definition;
      const since = performance.now();
      const callSpan = span?.call(
        path.slice(1),
        { 'rpc.system': 'grpc', 'rpc.method': path.slice(1) },
        address,
      );
      const metadata = new grpc.Metadata();
      if (callSpan !== undefined) metadata.set('traceparent', callSpan.traceparent);
      if (authorization !== undefined) metadata.set('authorization', authorization);
      const connected = connectTimeout === undefined ? undefined : connectWithin(client, connectTimeout);
      const send = (): Promise<unknown> =>
        new Promise((resolve, reject) => {
          const options = { deadline: Date.now() + timeout };
          const abort = (): void => call.cancel();
          const done = (error: ServiceError | null, response?: object): void => {
            signal.removeEventListener('abort', abort);
            if (error === null) {
              meter.answered(performance.now() - since);
              callSpan?.end();
              resolve(response);
              return;
            }
            const status = `gRPC status ${grpc.status[error.code] ?? error.code}`;
            callSpan?.fail(status, String(error.code));
            reject(signal.aborted ? signal.reason : new Error(status));
          };
          const call: ClientUnaryCall = client.makeUnaryRequest(
            path,
            requestSerialize,
            responseDeserialize,
            request,
            metadata,
            options,
            done,
          );
          if (signal.aborted) abort();
          else signal.addEventListener('abort', abort, { once: true });
        });
      return connected === undefined ? send() : connected.then(send);
    },
    close() {
      client.close();
      return Promise.resolve();
    },
  };
}

/** Rejects if the connection is not open within `timeout` ms. */
function connectWithin(client: Client, timeout: number): Promise<void> {
  return new Promise((resolve, reject) => {
    client.waitForReady(Date.now() + timeout, (error) =>
      error === undefined ? resolve() : reject(new Error('connection timeout')),
    );
  });
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
