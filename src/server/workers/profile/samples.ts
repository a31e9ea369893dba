import { setTimeout } from 'node:timers/promises';

/** A code location from the inspector. Lines count from 0. */
export interface CallFrame {
  readonly functionName: string;
  readonly scriptId: string;
  readonly url: string;
  readonly lineNumber: number;
}

/** Frames from the innermost to the outermost. */
export type Stack = readonly CallFrame[];

/** Samples of one process. */
export interface Samples {
  /** In ms since 1970. */
  readonly startedAt: number;
  /** In ms. */
  readonly duration: number;
  /** Stacks with their values: a count, then nanoseconds or bytes. */
  readonly stacks: readonly (readonly [stack: Stack, values: readonly [count: number, amount: number]])[];
}

/** Resolves when the time is over, or immediately when the signal is aborted. */
export async function measured(seconds: number, signal: AbortSignal): Promise<void> {
  await setTimeout(seconds * 1000, undefined, { signal }).catch(() => undefined);
}
