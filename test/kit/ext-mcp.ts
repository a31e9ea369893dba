import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServiceClientConstructor,
} from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import { extMcp } from '../../src/server/mcp/guardrails/ext-mcp.ts';

// biome-ignore lint/suspicious/noExplicitAny: messages are for the test to look into.
type Message = any;

/** Answers a call: with a result message, with an error, or never (undefined). */
export type Answer = (
  request: Message,
  method: 'CheckRequest' | 'CheckResponse',
) => Message | Error | undefined;

export interface ExtMcpService extends AsyncDisposable {
  /** `host:port`. */
  readonly address: string;
  /** Requests by method, in order. Bytes are buffers. */
  readonly received: readonly { readonly method: string; readonly request: Message }[];
  /** Number of calls that the gateway cancelled. */
  readonly cancelled: number;
}

/** A real gRPC server with the service that `remote` processors call. */
export async function extMcpService(answer: Answer): Promise<ExtMcpService> {
  const received: { method: string; request: Message }[] = [];
  let cancelled = 0;
  const loaded = loadPackageDefinition(
    fromJSON(extMcp.descriptor, { keepCase: true, oneofs: true, defaults: true }),
  ) as Message;
  const { service } = loaded.agentgateway.dev.ext_mcp.ExtMcp as ServiceClientConstructor;
  const handle =
    (method: 'CheckRequest' | 'CheckResponse') =>
    (call: Message, callback: (error: Error | null, result?: Message) => void): void => {
      received.push({ method, request: call.request });
      call.on('cancelled', () => {
        cancelled += 1;
      });
      const result = answer(call.request, method);
      if (result instanceof Error) callback(result);
      else if (result !== undefined) callback(null, result);
    };
  const server = new Server();
  server.addService(service, {
    CheckRequest: handle('CheckRequest'),
    CheckResponse: handle('CheckResponse'),
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    address: `127.0.0.1:${port}`,
    received,
    get cancelled() {
      return cancelled;
    },
    [Symbol.asyncDispose]: () => {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
}
