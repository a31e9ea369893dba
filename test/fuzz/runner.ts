import { env } from 'node:process';
import { expect, test } from 'vitest';
import { worstLoopDelay } from '../kit/loop-delay.ts';
import { repeats } from '../kit/thorough.ts';
import { type Change, changed, changesOf, type Random, randomOf, shown } from './mutate.ts';

// Runs trials with documents that were changed at random, and finds the one to blame.
// `FUZZ_SEED=7 FUZZ_TRIAL=123 npm test -- test/fuzz/KIND.test.ts -t KIND` repeats one trial of a failure message;
// `FUZZ_TRIALS=5000` sets how many there are, and `FUZZ_FINDINGS=20` after how many different failures it stops (default: 1).

const SEED = Number(env['FUZZ_SEED'] ?? 20_261_126);
const ONLY = env['FUZZ_TRIAL'];
const FINDINGS = Number(env['FUZZ_FINDINGS'] ?? 1);

/** Whether progress is reported. */
const IS_LONG = env['AGCTL_THOROUGH'] !== undefined || env['FUZZ_TRIALS'] !== undefined;

/** How long a trial may take. The limits of the gateway under test are set so that an answer comes far earlier, in ms. */
const TRIAL_LIMIT = 25_000;
/** How long one trial may keep other requests waiting, in ms of CPU time. */
const BLOCKED_LIMIT = 250;
/** Trials that take longer are counted, in ms. */
const SLOW = 300;
/** Rounds whose delay no trial repeats, such as those of a garbage collection, before delays of rounds are no longer looked into. */
const MOST_UNEXPLAINED = 3;
const NOT_REPEATED = 'no trial of this round repeats it alone; the number is that of the first';
/** Trials of one lane between two looks at errors and delays. */
const ROUNDS = 8;

/** One trial: a source of chance, and documents that it changes. */
export interface Trial {
  readonly index: number;
  /** Names the trial in requests and log lines. */
  readonly name: string;
  readonly random: Random;
  /** The document with random changes, as JSON text. */
  mutate(good: unknown): string;
  /** Adds to what is shown if the trial fails. */
  note(text: string): void;
}

export interface Kind<Lane> extends AsyncDisposable {
  /** Each runs one trial at a time, so it has its own target. */
  readonly lanes: readonly Lane[];
  /** Rejects if a property does not hold. */
  run(trial: Trial, lane: Lane): Promise<void>;
  /** Errors of the gateways themselves so far, which were contained. */
  internalErrors(): number;
  /** What a gateway logged of the last one. It logs each place once a minute. */
  internalError(): string;
}

interface Outcome {
  readonly index: number;
  readonly notes: readonly string[];
  readonly changes: readonly Change[];
  readonly failure: unknown;
  /** How long it took, in ms. */
  readonly took: number;
}

/** Declares a test of many trials: `few` in every run. */
export function fuzz<Lane>(name: string, few: number, start: () => Promise<Kind<Lane>>): void {
  const trials = Number(env['FUZZ_TRIALS'] ?? repeats(few, 100_000));
  test(`${name}: the gateway lives, answers in the protocol of the client and logs the cause, whatever arrives`, {
    timeout: 60_000 + trials * 50,
  }, async () => {
    await using kind = await start();
    const found = await attempt(kind, name, trials);
    expect(found.map((outcome) => report(name, outcome)).join('\n\n')).toBe('');
  });
}

async function attempt<Lane>(kind: Kind<Lane>, name: string, trials: number): Promise<Outcome[]> {
  const uncaught: unknown[] = [];
  const keep = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtException', keep).on('unhandledRejection', keep);
  try {
    if (ONLY !== undefined) {
      const outcome = await alone(kind, name, Number(ONLY), uncaught);
      process.stderr.write(`${report(name, outcome)}\n`);
      return outcome.failure === undefined ? [] : [outcome];
    }
    return await batches(kind, name, trials, uncaught);
  } finally {
    process.off('uncaughtException', keep).off('unhandledRejection', keep);
  }
}

async function batches<Lane>(
  kind: Kind<Lane>,
  name: string,
  trials: number,
  uncaught: unknown[],
): Promise<Outcome[]> {
  const found: Outcome[] = [];
  let slow = 0;
  let unexplained = 0;
  const size = kind.lanes.length * ROUNDS;
  const started = performance.now();
  for (let first = 0; first < trials && found.length < FINDINGS; first += size) {
    const outcomes: Outcome[] = [];
    const contained = kind.internalErrors();
    const blocked = await worstLoopDelay(() =>
      Promise.all(
        kind.lanes.map(async (lane, at) => {
          for (let index = first + at; index < Math.min(first + size, trials); index += kind.lanes.length)
            outcomes.push(await once(kind, name, index, lane));
        }),
      ),
    );
    await new Promise(setImmediate);
    slow += outcomes.filter(({ took }) => took > SLOW).length;
    const add = async (outcome: Outcome): Promise<void> => {
      if (outcome.failure === undefined || found.some((one) => isLike(one, outcome))) return;
      found.push(await smallest(kind, name, outcome, uncaught));
      if (IS_LONG) process.stderr.write(`${report(name, found.at(-1) as Outcome)}\n`);
    };
    const error = uncaught.shift() ?? internalError(kind, contained);
    for (const outcome of outcomes) {
      if (found.length >= FINDINGS) break;
      if (outcome.failure === undefined || found.some((one) => isLike(one, outcome))) continue;
      const again = await alone(kind, name, outcome.index, uncaught);
      await add(again.failure === undefined ? outcome : again);
    }
    if (error !== undefined) {
      const suspect: Outcome = { index: first, notes: [NOT_REPEATED], changes: [], failure: error, took: 0 };
      if (found.some((one) => isLike(one, suspect))) continue;
      await add((await culprit(kind, name, outcomes, uncaught)) ?? suspect);
    } else if (blocked > BLOCKED_LIMIT && unexplained < MOST_UNEXPLAINED) {
      const one = await culprit(kind, name, outcomes, uncaught);
      if (one === undefined) unexplained += 1;
      else await add(one);
    }
  }
  if (IS_LONG)
    process.stderr.write(
      `${name}: seed ${SEED}, ${trials} trials in ${Math.round(performance.now() - started)} ms (${slow} took over ${SLOW} ms), ${found.length} different failures\n`,
    );
  return found;
}

/** The first of some trials that fails while no other runs. */
async function culprit<Lane>(
  kind: Kind<Lane>,
  name: string,
  outcomes: readonly Outcome[],
  uncaught: unknown[],
): Promise<Outcome | undefined> {
  for (const { index, failure } of outcomes) {
    if (failure !== undefined) continue;
    const again = await alone(kind, name, index, uncaught);
    if (again.failure !== undefined) return again;
  }
  return undefined;
}

function internalError<Lane>(kind: Kind<Lane>, before: number): Error | undefined {
  if (kind.internalErrors() <= before) return undefined;
  return new Error(`an error of the gateway itself: ${kind.internalError()}`);
}

/** Whether two failures say the same, apart from values. */
const isLike = (one: Outcome, other: Outcome): boolean => summary(one) === summary(other);

const summary = ({ failure }: Outcome): string =>
  (failure instanceof Error ? failure.message : String(failure)).replaceAll(/[0-9]+/g, '').slice(0, 40);

/** Runs a trial while no other runs: what happens then is its doing. */
async function alone<Lane>(
  kind: Kind<Lane>,
  name: string,
  index: number,
  uncaught: unknown[],
  kept?: ReadonlySet<number>,
): Promise<Outcome> {
  uncaught.length = 0;
  const lane = kind.lanes[index % kind.lanes.length] as Lane;
  const contained = kind.internalErrors();
  let outcome: Outcome | undefined;
  const blocked = await worstLoopDelay(async () => {
    outcome = await once(kind, name, index, lane, kept);
    await new Promise((resolve) => setTimeout(resolve, 20));
  });
  const { failure, ...rest } = outcome as Outcome;
  const worst =
    uncaught[0] ??
    internalError(kind, contained) ??
    failure ??
    (blocked > BLOCKED_LIMIT ? new Error(`other requests waited for ${Math.round(blocked)} ms`) : undefined);
  uncaught.length = 0;
  return { ...rest, failure: worst };
}

/** The failure with the fewest changes that still fail. */
async function smallest<Lane>(
  kind: Kind<Lane>,
  name: string,
  outcome: Outcome,
  uncaught: unknown[],
): Promise<Outcome> {
  if (outcome.changes.length < 2) return outcome;
  for (let kept = 0; kept < outcome.changes.length; kept += 1) {
    const smaller = await alone(kind, name, outcome.index, uncaught, new Set([kept]));
    if (smaller.failure !== undefined) return smaller;
  }
  return outcome;
}

async function once<Lane>(
  kind: Kind<Lane>,
  name: string,
  index: number,
  lane: Lane,
  kept?: ReadonlySet<number>,
): Promise<Outcome> {
  const random = randomOf(SEED + index * 7919);
  const changes: Change[] = [];
  const notes: string[] = [];
  let drawn = 0;
  const trial: Trial = {
    index,
    name: `${name.replaceAll(/[^a-z0-9]+/gi, '-')}-${index}`,
    random,
    mutate: (good) => {
      const own = changesOf(random, good).filter(() => {
        drawn += 1;
        return kept?.has(drawn - 1) ?? true;
      });
      changes.push(...own);
      return changed(good, own);
    },
    note: (text) => void notes.push(text),
  };
  const started = performance.now();
  const took = (): number => performance.now() - started;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${TRIAL_LIMIT} ms`)), TRIAL_LIMIT);
  });
  try {
    await Promise.race([kind.run(trial, lane), late]);
    return { index, notes, changes, failure: undefined, took: took() };
  } catch (failure) {
    return { index, notes, changes, failure, took: took() };
  } finally {
    clearTimeout(timer);
  }
}

function report(name: string, { index, notes, changes, failure }: Outcome): string {
  const reason = failure instanceof Error ? (failure.stack ?? failure.message) : String(failure);
  return [
    `${name}: trial ${index} (FUZZ_SEED=${SEED} FUZZ_TRIAL=${index})`,
    ...changes.map((change) => `  changed: ${shown(change)}`),
    ...notes.map((note) => `  ${note.length > 600 ? `${note.slice(0, 600)}…` : note}`),
    `  ${reason.split('\n').slice(0, 8).join('\n  ')}`,
  ].join('\n');
}
