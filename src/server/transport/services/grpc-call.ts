import type {
  Client,
  ClientDuplexStream,
  ClientUnaryCall,
  Metadata,
  MethodDefinition,
  ServiceError,
} from '@grpc/grpc-js';
import { messageOf } from '../../../core/errors.ts';
import type { CallMeter, CallSpan, RequestSpan } from '../../kernel/observer.ts';

export interface GrpcCallOptions {
  /** Maximum time until the response, including the connection, in ms. */
  readonly timeout: number;
  readonly signal: AbortSignal;
  readonly span?: RequestSpan | undefined;
}

export interface GrpcStreamOptions extends Omit<GrpcCallOptions, 'timeout'> {
  readonly metadata?: readonly (readonly [name: string, value: string])[];
}

/** What a bidirectional call reports. Nothing is reported after `ended`. */
export interface GrpcStreamHandler {
  message(message: unknown): void;
  /** The service has read what was written: more can be written. */
  drained(): void;
  /** The service has ended the call, or it has failed: `problem` says how. Also after `cancel`. */
  ended(problem: string | undefined): void;
}

/** A bidirectional call. */
export interface GrpcStream {
  /** Returns false if the service should read first (`drained`). */
  write(message: object): boolean;
  /** Nothing more is written. */
  end(): void;
  cancel(): void;
  /** Whether messages of the service are read; the service has to wait otherwise. */
  pause(): void;
  resume(): void;
}

/** A call that is about to be made. */
export interface BegunCall {
  readonly client: Client;
  readonly definition: MethodDefinition<object, object>;
  readonly metadata: Metadata;
  readonly meter: CallMeter;
  readonly span: CallSpan | undefined;
  /** From `performance.now()`. */
  readonly since: number;
  statusText(code: number): string;
}

/** Calls a unary method. Rejects with an `Error` that names the gRPC status, and with the reason of the signal. */
export function callUnary(
  { client, definition, metadata, meter, span, since, statusText }: BegunCall,
  request: object,
  { timeout, signal }: GrpcCallOptions,
): Promise<unknown> {
  const { path, requestSerialize, responseDeserialize } = definition;
  return new Promise((resolve, reject) => {
    const options = { deadline: Date.now() + timeout };
    const abort = (): void => call.cancel();
    const done = (error: ServiceError | null, response?: object): void => {
      signal.removeEventListener('abort', abort);
      if (error === null) {
        meter.answered(performance.now() - since);
        span?.end();
        resolve(response);
        return;
      }
      const status = statusText(error.code);
      span?.fail(status, String(error.code));
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
}

/** Opens a bidirectional call. `connected` rejects if it takes too long to connect. */
export function openStream(
  { client, definition, metadata, meter, span, since, statusText }: BegunCall,
  handler: GrpcStreamHandler,
  {
    signal,
    metadata: more = [],
    connected,
  }: GrpcStreamOptions & { readonly connected: Promise<void> | undefined },
): GrpcStream {
  const { path, requestSerialize, responseDeserialize } = definition;
  for (const [key, value] of more) setMetadata(metadata, key, value);
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
  let isAnswered = false;
  let isEnded = false;
  const abort = (): void => call.cancel();
  const finish = (problem?: string, code?: number): void => {
    if (isEnded) return;
    isEnded = true;
    signal.removeEventListener('abort', abort);
    if (problem === undefined) span?.end();
    else span?.fail(problem, String(code ?? 'timeout'));
    // Has no effect on a call that has ended.
    call.cancel();
    handler.ended(problem);
  };
  connected?.catch((error: unknown) => finish(messageOf(error)));
  call.on('data', (message: unknown) => {
    if (!isAnswered) meter.answered(performance.now() - since);
    isAnswered = true;
    if (!isEnded) handler.message(message);
  });
  call.on('drain', () => isEnded || handler.drained());
  call.on('end', () => finish());
  call.on('error', (error: ServiceError) => finish(statusText(error.code), error.code));
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return streamOf(call, () => isEnded);
}

function streamOf(call: ClientDuplexStream<object, object>, isEnded: () => boolean): GrpcStream {
  return {
    write: (message) => isEnded() || call.write(message),
    end: () => void (isEnded() || call.end()),
    cancel: () => call.cancel(),
    pause: () => void call.pause(),
    resume: () => void call.resume(),
  };
}

/** Sets metadata, unless gRPC does not allow its name or value; names with `-bin` are for bytes. */
function setMetadata(metadata: Metadata, name: string, value: string): void {
  if (name.endsWith('-bin')) return;
  try {
    metadata.set(name, value);
  } catch {
    // Not valid.
  }
}

/** Rejects if the connection is not open within `timeout` ms. */
export function connectWithin(client: Client, timeout: number): Promise<void> {
  return new Promise((resolve, reject) => {
    client.waitForReady(Date.now() + timeout, (error) =>
      error === undefined ? resolve() : reject(new Error('connection timeout')),
    );
  });
}
