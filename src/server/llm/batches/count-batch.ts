import { LIMITS } from '../../../core/limits.ts';
import { callBudget } from '../../budgets/call-budget.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import { amountsOf, callPrices } from '../call/budget.ts';
import type { LlmCall } from '../llm-call.ts';
import { BatchSum } from './batch-sum.ts';
import { beyond, type CountedBatches, type Tally, tallyOf } from './counted-batches.ts';
import { batchIn } from './read-batch.ts';
import { ResultsMeter } from './results-meter.ts';

/**
 * Counts what a batch has used, once, when its state or its results are retrieved: for the client that does. Resolves when
 * the answer can be sent; results are counted while they pass. Rejects with an `AppError` (503) if budgets cannot be charged.
 */
export async function countBatch(
  ctx: RequestContext,
  call: LlmCall,
  { status, headers, body }: Reply,
  counted: CountedBatches | undefined,
): Promise<void> {
  const { batch } = call;
  if (batch === undefined || batch.kind === 'creation' || counted === undefined) return;
  if (status !== 200 || !(body instanceof UpstreamBody)) return;
  const counting = new Counting(ctx, call, counted);
  try {
    if (batch.kind === 'object') {
      await countObject(counting, batch.id, body);
      return;
    }
    await counting.open();
    const results = new Results(counting, batch.id, await counting.known(batch.id), batch.kind === 'results');
    body.observers.push(results);
    body.beforeEnd = () => results.complete();
    body.watcher = ctx;
    call.nonStreaming = results;
  } catch (error) {
    body.discard();
    throw error;
  }
  // The end comes when everything is counted, some time after the last byte.
  headers.delete('content-length');
}

async function countObject(counting: Counting, id: string, body: UpstreamBody): Promise<void> {
  const { bytes, isComplete } = await body.hold(LIMITS.checkedAnswerBytes);
  const found = isComplete ? batchIn(bytes.toString('utf8')) : undefined;
  if (found === undefined) return;
  await counting.open();
  counting.sum.add(found, found);
  await counting.count(found.resultsFile ?? id);
}

/** Adds the tokens of one batch to the record of the call that retrieves it, and charges budgets. */
class Counting {
  readonly call: LlmCall;
  readonly sum: BatchSum;
  readonly #ctx: RequestContext;
  readonly #counted: CountedBatches;

  constructor(ctx: RequestContext, call: LlmCall, counted: CountedBatches) {
    this.call = call;
    this.#ctx = ctx;
    this.#counted = counted;
    const { provider, providerModel, requestModel } = call;
    this.sum = new BatchSum(callPrices.get(ctx), provider, [providerModel, requestModel]);
  }

  /** Prepares budgets for a charge. */
  open(): void | Promise<void> {
    return callBudget.get(this.#ctx)?.open(this.#ctx);
  }

  /** What was counted until now of the batch with these results. */
  known(id: string): Tally | undefined | Promise<Tally | undefined> {
    return this.#counted.advance(this.#key(id), tallyOf({ input: 0, output: 0 }, 0n));
  }

  /** Counts what was not counted before. `known`: what is taken for that, if a process or store would have to be waited for. */
  count(id: string, known?: { readonly tally: Tally | undefined }): void | Promise<void> {
    const tally = tallyOf(this.sum.usage, this.sum.picoUsd);
    const before = this.#counted.advance(this.#key(id), tally);
    if (!(before instanceof Promise)) return this.#charge(tally, before);
    return known === undefined
      ? before.then((found) => this.#charge(tally, found))
      : this.#charge(tally, known.tally);
  }

  #charge(tally: Tally, before: Tally | undefined): void | Promise<void> {
    const rest = beyond(tally, before);
    if (rest === undefined) return;
    const { call, sum } = this;
    const cost = sum.cost(rest.picoUsd);
    call.counted = { usage: rest.usage, cost };
    call.responseModel = sum.model;
    call.requestModel = sum.model ?? call.requestModel;
    return callBudget.get(this.#ctx)?.charge(amountsOf(rest.usage, cost));
  }

  /** Servers of others may have the same ids. */
  #key(id: string): string {
    return JSON.stringify([this.call.provider, this.#ctx.endpoint, id]);
  }
}

/** The results of a batch, which are counted at their end. */
class Results {
  readonly #counting: Counting;
  readonly #meter: ResultsMeter;
  readonly #id: string;
  readonly #known: Tally | undefined;
  #isComplete = false;

  constructor(counting: Counting, id: string, known: Tally | undefined, isResults: boolean) {
    this.#counting = counting;
    this.#meter = new ResultsMeter(counting.sum, counting.call.limits.batchLineBytes, isResults);
    this.#id = id;
    this.#known = known;
  }

  see(chunk: Buffer): void {
    this.#meter.see(chunk);
  }

  /** Never rejects: what budgets could not be charged now, they are when the call has ended. */
  complete(): void | Promise<void> {
    this.#isComplete = true;
    this.#meter.ended();
    return this.#counting.count(this.#id)?.catch(() => undefined);
  }

  finalize(call: LlmCall): void {
    if (this.#meter.isOtherFile) return;
    const { unread } = this.#meter;
    if (this.#isComplete) call.progress = 'complete';
    // The client has disconnected, or the provider: what was seen is counted, and the rest when it is retrieved again.
    else void this.#counting.count(this.#id, { tally: this.#known })?.catch(() => undefined);
    if (unread > 0)
      call.estimated = `${unread} lines of the batch were not read: too long, or not the result of a request`;
  }
}
