import { LIMITS } from '../../core/limits.ts';
import type { Target } from './target.ts';
import { TargetFailure } from './target-failure.ts';

/** What is said of a target that has been waited for so long, in ms. */
export const timeoutMessage = (milliseconds: number): string => `no answer within ${milliseconds / 1000} s`;

/** The failure of a target that did not do something in time. The log is told at which address, and `diagnosis`. */
export function lateFailure(
  { endpoint }: Pick<Target, 'endpoint'>,
  message: string,
  diagnosis?: string,
): Error {
  if (endpoint === undefined && diagnosis === undefined) return new Error(message);
  const at = endpoint === undefined ? '' : `${endpoint}: `;
  return new TargetFailure(message, `${at}${message}${diagnosis === undefined ? '' : `; ${diagnosis}`}`);
}

/** The outcome of a promise, or a rejection when a target takes longer than `LIMITS.slowTarget`; `onLate` runs then. */
export function withTimeout<T>(
  promise: Promise<T>,
  onLate?: () => void,
  target: Pick<Target, 'endpoint'> = { endpoint: undefined },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      onLate?.();
      reject(lateFailure(target, timeoutMessage(LIMITS.slowTarget)));
    }, LIMITS.slowTarget);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
