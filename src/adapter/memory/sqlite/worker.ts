import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../../../core/errors.ts';
import { membersOf, textIn } from '../../../core/foreign.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { EMPTY_ENGINE } from '../sql/empty-engine.ts';
import { OPERATIONS, runOperation } from '../sql/operations.ts';
import { callError, openError } from './errors.ts';
import {
  type Answer,
  type Call,
  failureOf,
  type LogLine,
  type OperationCall,
  type Result,
} from './messages.ts';
import { NamespaceFiles } from './namespace-files.ts';
import { creates } from './owned-file.ts';

// The thread that owns the files. Calls arrive as messages. Those of one namespace are answered in order; namespaces
// take turns. Queued writes of a namespace are committed together and acknowledged after the commit.

const port = parentPort;
if (port === null) throw new Error('sqlite/worker.ts runs as a worker thread');
const answer = (message: Answer): void => port.postMessage(message);
const log: LogLine = (level, message, fields) => answer({ kind: 'log', level, message, fields });

class Scheduler {
  readonly #files: NamespaceFiles;
  /** Waiting calls by namespace; the namespace whose turn is next comes first. */
  readonly #queues = new Map<string, Call[]>();
  #closing: Call | undefined;
  #draining = false;

  constructor(files: NamespaceFiles) {
    this.#files = files;
  }

  take(call: Call): void {
    if (call.name === 'close') this.#closing = call;
    else {
      const queue = this.#queues.get(call.namespace);
      if (queue === undefined) this.#queues.set(call.namespace, [call]);
      else queue.push(call);
    }
    if (this.#draining) return;
    this.#draining = true;
    // Everything else that has arrived by then belongs to the same batch.
    setImmediate(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [namespace, queue] = next;
      for (const result of await this.#turn(namespace, queue)) answer(result);
      this.#queues.delete(namespace);
      if (queue.length > 0) this.#queues.set(namespace, queue);
      // Lets messages arrive, so that the next batch is larger than one.
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#draining = false;
    if (this.#closing !== undefined) this.#close(this.#closing);
  }

  #next(): [string, Call[]] | undefined {
    return this.#queues.entries().next().value;
  }

  /** Runs one call, or a batch of writes. */
  async #turn(namespace: string, queue: Call[]): Promise<Result[]> {
    const batch = nextCalls(queue);
    const [first] = batch;
    if (first === undefined) return [];
    try {
      if (!isOperation(first)) return [{ kind: 'result', id: first.id, value: this.#task(first) }];
      return await this.#run(namespace, first, batch.filter(isOperation));
    } catch (error) {
      const failure = failureOf(callError(error));
      return batch.map(({ id }) => ({ kind: 'failure', id, failure }));
    }
  }

  #task({ name, namespace, args }: Call): unknown {
    if (name === 'remove') return this.#files.remove(namespace);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `openSqliteStore` passes a page
    if (name === 'list') return this.#files.list(args[0] as { limit: number });
    const file = this.#files.existing(namespace);
    if (file === undefined) throw new AppError('memory_not_found', { message: 'no such namespace' });
    return file.copyTo(textIn(args[0]));
  }

  async #run(namespace: string, first: OperationCall, batch: readonly OperationCall[]): Promise<Result[]> {
    const known = this.#files.existing(namespace);
    if (known === undefined && !creates(batch)) return onNothing(batch);
    const file = known ?? this.#files.created(namespace);
    const results = OPERATIONS[first.name].writes ? await file.write(batch) : [await file.read(first)];
    // A first write that failed leaves no namespace.
    if (known === undefined && results.every(({ kind }) => kind === 'failure')) this.#files.remove(namespace);
    else this.#files.used(namespace);
    return results;
  }

  #close(call: Call): void {
    try {
      this.#files.close();
      answer({ kind: 'result', id: call.id, value: undefined });
    } catch (error) {
      answer({ kind: 'failure', id: call.id, failure: failureOf(callError(error)) });
    }
    port?.close();
  }
}

function isOperation(call: Call | undefined): call is OperationCall {
  return call !== undefined && call.name in OPERATIONS;
}

/** Takes the first call from a queue, and if it writes, the writes that follow it. */
function nextCalls(queue: Call[]): Call[] {
  const isWrite = (call: Call | undefined): boolean => isOperation(call) && OPERATIONS[call.name].writes;
  let count = 1;
  if (isWrite(queue[0])) while (count < MEMORY_STORE_LIMITS.batch && isWrite(queue[count])) count++;
  return queue.splice(0, count);
}

/** The answers of a namespace that does not exist. */
async function onNothing(batch: readonly OperationCall[]): Promise<Result[]> {
  const results: Result[] = [];
  for (const { id, name, args } of batch)
    results.push({ kind: 'result', id, value: await runOperation(EMPTY_ENGINE, name, args) });
  return results;
}

function start(path: string): void {
  try {
    const scheduler = new Scheduler(new NamespaceFiles(path, log));
    port?.on('message', (call: Call) => scheduler.take(call));
    answer({ kind: 'opened' });
  } catch (error) {
    answer({ kind: 'refused', failure: failureOf(openError(path, error)) });
    port?.close();
  }
}

start(textIn(membersOf(workerData)['path']));
