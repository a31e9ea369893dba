import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServiceClientConstructor,
} from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import type { ServiceDescriptor } from '../../src/server/transport/services/grpc.ts';
import { type Certificate, certificateOf } from './certificates.ts';

// biome-ignore lint/suspicious/noExplicitAny: messages are for the test to look into.
export type Message = any;

/** Answers a call: with a message, with an error, or never (undefined). */
export type GrpcAnswer = (request: Message) => Message | Error | undefined;

export interface TestGrpcService extends AsyncDisposable {
  /** `host:port`. */
  readonly address: string;
  readonly port: number;
  /** Requests, in order. Bytes are buffers, 64-bit numbers texts. */
  readonly received: readonly Message[];
  /** `authorization` of the requests. */
  readonly credentials: readonly unknown[];
  /** Number of calls that the gateway cancelled. */
  readonly cancelled: number;
}

/** A real gRPC server with one service of one unary method. */
export async function grpcService(
  { name, descriptor }: ServiceDescriptor,
  method: string,
  answer: GrpcAnswer,
  { certificate }: { certificate?: Certificate } = {},
): Promise<TestGrpcService> {
  const received: Message[] = [];
  const credentials: unknown[] = [];
  let cancelled = 0;
  let loaded: Message = loadPackageDefinition(
    fromJSON(descriptor, { keepCase: true, oneofs: true, defaults: true, longs: String }),
  );
  for (const part of name.split('.')) loaded = loaded[part];
  const { service } = loaded as ServiceClientConstructor;
  const server = new Server();
  server.addService(service, {
    [method]: (call: Message, callback: (error: Error | null, result?: Message) => void): void => {
      received.push(call.request);
      credentials.push(call.metadata.get('authorization')[0]);
      call.on('cancelled', () => {
        cancelled += 1;
      });
      const result = answer(call.request);
      if (result instanceof Error) callback(result);
      else if (result !== undefined) callback(null, result);
    },
  });
  const tls = certificate === undefined ? undefined : certificateOf(certificate);
  const security =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [
          { private_key: Buffer.from(tls.key), cert_chain: Buffer.from(tls.cert) },
        ]);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', security, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    address: `127.0.0.1:${port}`,
    port,
    received,
    credentials,
    get cancelled() {
      return cancelled;
    },
    [Symbol.asyncDispose]: () => {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
}
