import { LIMITS } from '../../core/limits.ts';
import type { Target } from './target.ts';
import { TargetFailure } from './target-failure.ts';

/** Error text for a target that did not answer within that many ms. */
export const timeoutMessage = (milliseconds: number): string => `no answer within ${milliseconds / 1000} s`;

/** The failure of a target that exceeded a timeout. Its detail for the log also has the address and `diagnosis`. */
export function timeoutFailure(
  { endpoint }: Pick<Target, 'endpoint'>,
  message: string,
  diagnosis?: string,
): Error {
  if (endpoint === undefined && diagnosis === undefined) return new Error(message);
  const at = endpoint === undefined ? '' : `${endpoint}: `;
  return new TargetFailure(message, `${at}${message}${diagnosis === undefined ? '' : `; ${diagnosis}`}`);
}

/** Settles like the promise, but rejects after `LIMITS.slowTarget` ms, after calling `onTimeout`. */
export function withTimeout<T>(
  promise: Promise<T>,
  onTimeout?: () => void,
  target: Pick<Target, 'endpoint'> = { endpoint: undefined },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      onTimeout?.();
      reject(timeoutFailure(target, timeoutMessage(LIMITS.slowTarget)));
    }, LIMITS.slowTarget);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
