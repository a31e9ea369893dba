import { LIMITS } from '../../core/limits.ts';

/** What is said of a target that has been waited for so long, in ms. */
export const noAnswer = (milliseconds: number): string => `no answer within ${milliseconds / 1000} s`;

/** The outcome of a promise, or a rejection when a target takes longer than `LIMITS.slowTarget`; `onLate` runs then. */
export function inTime<T>(promise: Promise<T>, onLate?: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      onLate?.();
      reject(new Error(noAnswer(LIMITS.slowTarget)));
    }, LIMITS.slowTarget);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
