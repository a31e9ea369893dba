import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { ImmediateAnswer, ProcessingAnswer } from '../envoy/external-processor.ts';
import type { BodyOutput, BodySource, OutputControl } from './bodies.ts';
import type { Exchange, ExchangeSide } from './exchange.ts';
import type { BodyMode } from './modes.ts';
import type { SideOptions, SideOutcome } from './side-options.ts';

type State =
  /** The answer about the headers is missing. */
  | 'headers'
  /** The body is collected, and then the answer about it is missing. */
  | 'whole'
  /** The body is passed through the service. */
  | 'pieces'
  /** The body is passed on without the service. */
  | 'bypassed'
  /** Everything was answered; what is still received is dropped. */
  | 'done';

/** One direction of a call of the service. */
export class Side<Body> implements ExchangeSide {
  readonly #exchange: Exchange;
  readonly #options: SideOptions<Body>;
  #mode: BodyMode;
  #state: State = 'headers';
  #source: BodySource | undefined;
  #output: BodyOutput<Body> | undefined;
  #settle: { resolve(outcome: SideOutcome<Body>): void; reject(error: AppError): void } | undefined;
  #isFirst = true;
  /** What was received of the body: all for `whole`, otherwise what is sent on if the service fails. */
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #isKept: boolean;
  /** The source has ended, or has been paused at `limit`. */
  #isEnded = false;
  /** Received beyond `limit`. */
  #rest: Buffer | undefined;
  #isOutputPaused = false;
  #isSourcePaused = false;
  #timer: NodeJS.Timeout | undefined;
  isDropped = false;

  constructor(exchange: Exchange, options: SideOptions<Body>) {
    this.#exchange = exchange;
    this.#options = options;
    this.#mode = options.bodyMode;
    this.#isKept = options.isOpen;
  }

  get isDone(): boolean {
    return this.#state === 'done' || this.#state === 'bypassed';
  }

  /** Resolves as soon as the message can be passed on. @throws AppError */
  run(): Promise<SideOutcome<Body>> {
    const { direction, sendsHeaders, source } = this.#options;
    const isStreamed = source !== undefined && this.#mode === 'fullDuplexStreamed';
    this.#exchange.begin(direction, this);
    if (!sendsHeaders && (source === undefined || this.#mode === 'none')) {
      this.#finish('done');
      return Promise.resolve({ body: undefined });
    }
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      if (this.#exchange.problem !== undefined) {
        this.failed(this.#exchange.problem);
        return;
      }
      if (sendsHeaders) {
        this.#send({
          [`${direction}_headers`]: {
            headers: this.#options.headers(),
            end_of_stream: source === undefined,
          },
        });
        this.#arm();
      }
      // The service may wait for the whole body before it answers about the headers.
      if (isStreamed) this.#stream(sendsHeaders ? 'headers' : 'pieces');
      else if (!sendsHeaders) this.#collect();
    });
  }

  answer(answer: ProcessingAnswer): void {
    if (answer.kind === 'none') return;
    if (answer.kind === 'immediate') this.#end(answer.immediate);
    else if (answer.kind === 'headers' && this.#state === 'headers') this.#headersAnswered(answer);
    else if (answer.kind === 'body' && this.#state === 'whole' && this.#isEnded) this.#wholeAnswered(answer);
    else if (answer.kind === 'body' && this.#state === 'pieces') this.#pieceAnswered(answer);
    else this.#exchange.fail(`it answered about ${answer.kind} out of turn`);
  }

  failed(problem: string): void {
    if (this.isDone) return;
    this.#disarm();
    const error = new AppError('ext_proc_failed', { detail: `the service failed: ${problem}` });
    if (this.#settle === undefined) this.#fail(error);
    else if (this.#options.isOpen && (this.#isKept || this.#state === 'whole')) this.#bypass();
    else this.#fail(error);
  }

  drained(): void {
    if (this.#state !== 'headers' && this.#state !== 'pieces') return;
    if (!this.#isSourcePaused) return;
    this.#isSourcePaused = false;
    if (!this.#isEnded && !this.#waitsForHeaders) this.#disarm();
    this.#source?.resume();
  }

  /** Whether silence of both sides counts: a response may be a stream without end, for whose headers the client waits. */
  get #waitsForHeaders(): boolean {
    return (
      this.#state === 'headers' && (this.#options.direction === 'response' || this.#source === undefined)
    );
  }

  #send(part: object): boolean {
    const context = this.#isFirst ? this.#options.context : undefined;
    this.#isFirst = false;
    return this.#exchange.send({ ...part, ...context });
  }

  #sendBody(bytes: Buffer, isLast: boolean): boolean {
    return this.#send({ [`${this.#options.direction}_body`]: { body: bytes, end_of_stream: isLast } });
  }

  #headersAnswered({ headers, body, modes }: ProcessingAnswer & { kind: 'headers' | 'body' }): void {
    const { source } = this.#options;
    this.#disarm();
    this.#options.changeHeaders(headers);
    const isStreamed = this.#output !== undefined;
    if (modes !== undefined) this.#mode = this.#options.override(modes);
    this.#dropKept();
    if (source === undefined) this.#done(undefined);
    else if (body?.kind === 'whole') {
      // The service has replaced a body that it has not read.
      this.#source ??= source();
      this.#source.discard();
      this.#done(body.bytes);
    } else if (isStreamed) {
      this.#state = 'pieces';
      if (this.#isEnded) this.#arm();
      if (body !== undefined) this.#piece(body);
      this.#resolve({ body: this.#output?.body });
    } else if (body !== undefined) this.#exchange.fail('it sent a piece of a body that is not streamed');
    else if (this.#mode === 'none') this.#done(undefined);
    else if (this.#mode === 'fullDuplexStreamed') {
      this.#isKept = false;
      this.#stream('pieces');
      this.#resolve({ body: this.#output?.body });
    } else this.#collect();
  }

  /** Passes the body through the service. */
  #stream(state: 'headers' | 'pieces'): void {
    this.#state = state;
    this.#output = this.#options.output(this.#control());
    this.#consume();
  }

  /** Collects the body, to send it whole. */
  #collect(): void {
    this.#state = 'whole';
    this.#consume();
  }

  #consume(): void {
    this.#source ??= this.#options.source?.();
    this.#source?.consume({
      push: (chunk) => this.#received(chunk),
      end: () => this.#sourceEnded(),
      fail: (why, isTimeout) => this.#sourceFailed(why, isTimeout),
    });
  }

  /** Returns false to pause the source. */
  #received(chunk: Buffer): boolean {
    if (this.#state === 'done') return true;
    if (this.#state === 'bypassed') {
      this.#output?.push(chunk);
      this.#isSourcePaused = this.#isOutputPaused;
      return !this.#isSourcePaused;
    }
    if (this.#state === 'whole') return this.#collected(chunk);
    if (this.#isKept) this.#keep(chunk);
    let canGoOn = true;
    for (let at = 0; at < chunk.length; at += LIMITS.processorPiece)
      canGoOn = this.#sendBody(chunk.subarray(at, at + LIMITS.processorPiece), false);
    this.#isSourcePaused = !canGoOn;
    // A service that does not read is as good as one that does not answer.
    if (!canGoOn || this.#waitsForHeaders) this.#arm();
    return canGoOn;
  }

  #keep(chunk: Buffer): void {
    this.#kept.push(chunk);
    this.#keptBytes += chunk.length;
    if (this.#keptBytes <= this.#options.limit) return;
    this.#isKept = false;
    this.#dropKept();
  }

  #dropKept(): void {
    this.#kept = [];
    this.#keptBytes = 0;
  }

  #collected(chunk: Buffer): boolean {
    const room = this.#options.limit - this.#keptBytes;
    this.#kept.push(chunk.subarray(0, room));
    this.#keptBytes += Math.min(room, chunk.length);
    if (chunk.length <= room) return true;
    if (this.#mode === 'buffered') {
      this.#exchange.finish();
      this.#fail(this.#options.tooLarge());
      return true;
    }
    this.#rest = chunk.subarray(room);
    this.#isSourcePaused = true;
    this.#isEnded = true;
    this.#sendBody(Buffer.concat(this.#kept), false);
    this.#arm();
    return false;
  }

  #sourceEnded(): void {
    if (this.#state === 'bypassed') this.#output?.end();
    if (this.isDone) return;
    this.#isEnded = true;
    this.#sendBody(this.#state === 'whole' ? Buffer.concat(this.#kept) : Buffer.alloc(0), true);
    this.#arm();
  }

  #sourceFailed(why: string, isTimeout: boolean): void {
    if (this.#state === 'done') return;
    const isBypassed = this.#state === 'bypassed';
    this.#fail(this.#options.cutOff(why, isTimeout), why);
    if (!isBypassed) this.#exchange.fail('the body ended early');
  }

  #wholeAnswered({ headers, body }: ProcessingAnswer & { kind: 'headers' | 'body' }): void {
    if (body?.kind === 'piece' && !body.isLast) {
      this.#exchange.fail('it sent a piece of a body that is not streamed');
      return;
    }
    this.#disarm();
    this.#options.changeHeaders(headers);
    const bytes = body?.bytes ?? Buffer.concat(this.#kept);
    if (this.#rest === undefined) this.#done(bytes);
    else this.#passOn([bytes]);
  }

  #pieceAnswered({ body }: ProcessingAnswer & { kind: 'headers' | 'body' }): void {
    if (body?.kind !== 'piece') {
      this.#exchange.fail('it answered about a streamed body without `streamed_response`');
      return;
    }
    if (this.#isEnded) this.#arm();
    this.#piece(body);
    this.#resolve({ body: this.#output?.body });
  }

  #piece(body: { readonly bytes: Buffer; readonly isLast?: boolean }): void {
    if (body.bytes.length > 0) this.#output?.push(body.bytes);
    // Only if the service does not have to wait.
    if (this.#isOutputPaused && (this.#output?.held ?? 0) > this.#options.limit) {
      this.#drop();
      this.#output?.fail('the backend does not read the request');
      return;
    }
    if (body.isLast !== true) return;
    this.#output?.end();
    // What the service has not waited for is not needed.
    if (!this.#isEnded) this.#source?.discard();
    this.#finish('done');
  }

  /** The message is passed on as it was. */
  #bypass(): void {
    const { source } = this.#options;
    const isTaken = this.#source !== undefined;
    if (source === undefined || !isTaken) {
      this.#done(undefined);
      return;
    }
    this.#passOn(this.#kept);
  }

  /** Passes on these bytes, and then the rest of the body without the service. */
  #passOn(bytes: readonly Buffer[]): void {
    const isWhole = this.#isEnded && this.#rest === undefined;
    if (isWhole && this.#output === undefined) {
      this.#done(Buffer.concat(bytes));
      return;
    }
    this.#finish('bypassed');
    this.#output ??= this.#options.output(this.#control());
    for (const each of bytes) this.#output.push(each);
    if (this.#rest !== undefined) this.#output.push(this.#rest);
    this.#dropKept();
    if (isWhole) this.#output.end();
    this.#resolve({ body: this.#output.body });
    if (this.#isSourcePaused && !this.#isOutputPaused) this.#resumeSource();
  }

  #resumeSource(): void {
    this.#isSourcePaused = false;
    this.#source?.resume();
  }

  /** An immediate response ends the exchange. */
  #end(immediate: ImmediateAnswer): void {
    const isSettled = this.#settle === undefined;
    this.#finish('done');
    this.#source?.discard();
    this.#exchange.finish();
    if (isSettled) {
      this.#options.late({ immediate });
      this.#output?.fail('the external processor has ended it');
    } else this.#resolve({ immediate });
  }

  #done(body: Buffer | undefined): void {
    this.#finish('done');
    this.#resolve({ body });
  }

  #resolve(outcome: SideOutcome<Body>): void {
    this.#settle?.resolve(outcome);
    this.#settle = undefined;
  }

  #fail(error: AppError, why = 'the external processor has failed'): void {
    this.#finish('done');
    this.#source?.discard();
    if (this.#settle === undefined) this.#options.late({ error });
    this.#settle?.reject(error);
    this.#settle = undefined;
    this.#output?.fail(why);
  }

  #finish(state: 'done' | 'bypassed'): void {
    this.#disarm();
    this.#state = state;
    this.#exchange.settled();
  }

  /** The rest of the message is not needed. */
  #drop(): void {
    this.isDropped = true;
    this.#finish('done');
    this.#source?.discard();
  }

  /** What the reader of the output asks for. */
  #control(): OutputControl {
    return {
      pause: () => {
        this.#isOutputPaused = true;
        if (this.#state !== 'pieces') return;
        this.#disarm();
        if (this.#options.direction === 'request' && this.#exchange.isResponding) return;
        this.#exchange.pause();
      },
      resume: () => {
        if (!this.#isOutputPaused) return;
        this.#isOutputPaused = false;
        if (this.#state === 'bypassed') {
          if (this.#isSourcePaused) this.#resumeSource();
          return;
        }
        this.#exchange.resume();
        if (this.#state === 'pieces' && this.#isEnded) this.#arm();
      },
      discard: () => {
        if (this.#state === 'done') return;
        this.#drop();
      },
    };
  }

  #arm(): void {
    this.#disarm();
    if (this.isDone) return;
    const { timeout } = this.#options;
    this.#timer = setTimeout(() => this.#exchange.fail(`no answer within ${timeout} ms`), timeout);
  }

  #disarm(): void {
    clearTimeout(this.#timer);
  }
}
