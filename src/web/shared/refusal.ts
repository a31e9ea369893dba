import { ApiError } from './api.ts';

/** Whether the server has refused the user. To ask again changes nothing, and its audit counts each attempt. */
export const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && isRefused(error.status);

export const isRefused = (status: number | undefined): boolean => status === 401 || status === 403;

/** Calls `again` once the page is shown again, whose user may have signed in elsewhere meanwhile; not after `signal` is aborted. */
export function whenShownAgain(again: () => void, signal: AbortSignal): void {
  const look = (): void => {
    if (document.visibilityState === 'hidden') return;
    document.removeEventListener('visibilitychange', look);
    again();
  };
  document.addEventListener('visibilitychange', look, { signal });
}
