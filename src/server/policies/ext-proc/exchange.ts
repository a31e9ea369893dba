import { messageOf } from '../../../core/errors.ts';
import type { GrpcStream, GrpcStreamHandler } from '../../transport/services/grpc-call.ts';
import { type Direction, type ProcessingAnswer, processingAnswerIn } from '../envoy/external-processor.ts';

/** The request or the response, as a call of the service is about it. */
export interface ExchangeSide {
  readonly isDone: boolean;
  /** Whether it was done before the service was: what the service still answers is dropped. */
  readonly isDropped: boolean;
  answer(answer: ProcessingAnswer): void;
  /** The service has failed. */
  failed(problem: string): void;
  drained(): void;
}

interface ExchangeOptions {
  open(handler: GrpcStreamHandler): GrpcStream;
  /** `ProtocolConfiguration`, for the first message. */
  readonly protocolConfig: object;
  /** How long the service may take to end the call once nothing more is sent, in ms. */
  readonly timeout: number;
  /** `dynamic_metadata` of an answer. */
  onMetadata(metadata: Readonly<Record<string, unknown>>): void;
}

/** One call of the service: everything about one request and its response. */
export class Exchange implements GrpcStreamHandler {
  readonly #stream: GrpcStream;
  readonly #options: ExchangeOptions;
  #request: ExchangeSide | undefined;
  #response: ExchangeSide | undefined;
  #isFirst = true;
  #isFinished = false;
  #linger: NodeJS.Timeout | undefined;
  /** How the service has failed. */
  problem: string | undefined;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#stream = options.open(this);
  }

  /** `side` gets the answers about its direction from now on. */
  begin(direction: Direction, side: ExchangeSide): void {
    if (direction === 'request') this.#request = side;
    else this.#response = side;
    // A backend may answer without reading the request: answers about the response must not wait behind it.
    if (direction === 'response') this.#stream.resume();
  }

  /** Whether the backend has answered. */
  get isResponding(): boolean {
    return this.#response !== undefined;
  }

  /** Returns false if the service should read first. */
  send(message: object): boolean {
    const first = this.#isFirst ? { protocol_config: this.#options.protocolConfig } : undefined;
    this.#isFirst = false;
    return this.problem === undefined && !this.#isFinished
      ? this.#stream.write({ ...message, ...first })
      : true;
  }

  /** Whether answers are read: those of the other direction wait as well. */
  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  /** One side is done. */
  settled(): void {
    if (this.#request?.isDone !== false && this.#response?.isDone === true) this.finish();
  }

  /** Nothing more is sent, and nothing is waited for. */
  finish(): void {
    if (this.#isFinished || this.problem !== undefined) return;
    this.#isFinished = true;
    this.#stream.end();
    // An answer that is still under way must not keep the call open.
    this.#stream.resume();
    this.#linger = setTimeout(() => this.#stream.cancel(), this.#options.timeout);
    this.#linger.unref();
  }

  /** Ends the call at once. */
  fail(problem: string): void {
    if (this.problem !== undefined || this.#isFinished) return;
    this.problem = problem;
    this.#stream.cancel();
    this.#request?.failed(problem);
    this.#response?.failed(problem);
  }

  message(message: unknown): void {
    if (this.problem !== undefined || this.#isFinished) return;
    let answer: ProcessingAnswer;
    try {
      answer = processingAnswerIn(message);
    } catch (error) {
      this.fail(messageOf(error));
      return;
    }
    if (answer.metadata !== undefined) this.#options.onMetadata(answer.metadata);
    // `override_message_timeout` alone, which upstream ignores too.
    if (answer.kind === 'none') return;
    const side = this.#sideOf(answer);
    if (side?.isDropped === true) return;
    if (side === undefined || side.isDone) this.fail('it answered what it was not asked');
    else side.answer(answer);
  }

  #sideOf(answer: Exclude<ProcessingAnswer, { kind: 'none' }>): ExchangeSide | undefined {
    if (answer.kind === 'immediate') return this.#response ?? this.#request;
    return answer.direction === 'request' ? this.#request : this.#response;
  }

  drained(): void {
    this.#request?.drained();
    this.#response?.drained();
  }

  ended(problem: string | undefined): void {
    clearTimeout(this.#linger);
    this.fail(problem ?? 'it ended the call early');
  }
}
