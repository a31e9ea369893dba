import { AppError } from '../../../core/errors.ts';
import { byForm } from '../../../core/redact.ts';

/** Causes in the log; the messages of some libraries list every attempt with an essay. */
const LONGEST = 500;

/**
 * The failure of a call for which there are no credentials (503). Nothing was sent, so another model may be tried.
 * `places` is where credentials are looked for; the reason is logged, and not sent to the client.
 */
export function noCredentials(places: string, cause: unknown): AppError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const shown = byForm.line(reason.replaceAll(/\s+/g, ' ')).slice(0, LONGEST);
  return new AppError('upstream_unreachable', {
    message: 'upstream call failed: the gateway has no valid credentials for the provider',
    detail: `no credentials: ${shown}; looked for: ${places}`,
  });
}
