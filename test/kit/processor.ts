import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServiceClientConstructor,
} from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import { externalProcessor } from '../../src/server/policies/envoy/external-processor.ts';
import type { Message } from './grpc-service.ts';

/** One call of the service, as a test sees it. */
export interface ProcessorCall {
  /** `done` is called when the gateway can take more. */
  answer(message: Message, done?: () => void): void;
  /** Ends the call with the status OK. */
  end(): void;
  /** Ends the call with an error. */
  fail(): void;
  /** What the gateway has sent in this call. */
  readonly received: Message[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface TestProcessor extends AsyncDisposable {
  /** `host:port`. */
  readonly address: string;
  readonly calls: readonly ProcessorCall[];
  /** Number of calls that are open. */
  readonly open: number;
}

/** Called with each message of the gateway. */
export type Script = (message: Message, call: ProcessorCall) => void;

/** A real gRPC server with Envoy's `ExternalProcessor`. */
export async function processor(script: Script): Promise<TestProcessor> {
  const calls: ProcessorCall[] = [];
  let open = 0;
  let loaded: Message = loadPackageDefinition(
    fromJSON(externalProcessor.descriptor, { keepCase: true, oneofs: true, defaults: true }),
  );
  for (const part of externalProcessor.name.split('.')) loaded = loaded[part];
  const server = new Server();
  server.addService((loaded as ServiceClientConstructor).service, {
    Process: (stream: Message): void => {
      open += 1;
      const received: Message[] = [];
      const call: ProcessorCall = {
        answer: (message, done) => void stream.write(message, done),
        end: () => stream.end(),
        fail: () => stream.emit('error', { code: 13, details: 'broken' }),
        received,
        metadata: stream.metadata.getMap(),
      };
      calls.push(call);
      stream.on('data', (message: Message) => {
        received.push(message);
        script(message, call);
      });
      stream.on('end', () => stream.end());
      stream.on('error', () => undefined);
      let isOver = false;
      for (const event of ['cancelled', 'finish', 'close'])
        stream.on(event, () => {
          if (!isOver) open -= 1;
          isOver = true;
        });
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    address: `127.0.0.1:${port}`,
    calls,
    get open() {
      return open;
    },
    [Symbol.asyncDispose]: () => {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
}

/** `HeaderMutation`. */
export const mutation = (set: Record<string, string>, remove: readonly string[] = []): Message => ({
  set_headers: Object.entries(set).map(([key, value]) => ({
    header: { key, raw_value: Buffer.from(value) },
  })),
  remove_headers: remove,
});

/** An answer about headers or a body: `part('request_headers', {…CommonResponse})`. */
export const part = (name: string, response: Message = {}): Message => ({ [name]: { response } });

/** A piece of a body. */
export const piece = (name: string, body: string | Buffer, isLast: boolean): Message =>
  part(name, {
    body_mutation: { streamed_response: { body: Buffer.from(body), end_of_stream: isLast } },
  });

/** `immediate_response`. */
export const immediate = (code: number, body = '', headers: Record<string, string> = {}): Message => ({
  immediate_response: { status: { code }, body: Buffer.from(body), headers: mutation(headers) },
});

/** Answers every message, and returns bodies as they are, after `change`. */
export function echo(
  change: (text: string) => string = (text) => text,
  headers: Readonly<Record<string, Message>> = {},
): Script {
  return (message, call) => {
    const name: string = message.request;
    if (name.endsWith('_headers')) call.answer(part(name, { header_mutation: headers[name] }));
    else {
      const { body, end_of_stream: isLast } = message[name];
      call.answer(piece(name, change(body.toString('latin1')), isLast));
    }
  };
}

/** The texts of the headers that a message has. */
export const sentHeaders = (message: Message): Record<string, string> => {
  const { headers } = message[message.request];
  return Object.fromEntries(
    headers.headers.map(({ key, raw_value: raw }: Message) => [key, raw.toString('latin1')]),
  );
};
