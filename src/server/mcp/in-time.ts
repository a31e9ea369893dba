import { LIMITS } from '../../core/limits.ts';

/** The outcome of a promise, or a rejection when a target takes longer than `LIMITS.slowTarget`; `onLate` runs then. */
export function inTime<T>(promise: Promise<T>, onLate?: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      onLate?.();
      reject(new Error(`no answer within ${LIMITS.slowTarget / 1000} s; the others serve on without it`));
    }, LIMITS.slowTarget);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
