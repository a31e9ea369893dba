import type { IncomingHttpHeaders } from 'node:http';
import { messageOf } from '../../../core/errors.ts';
import type { Limits } from '../../../core/limits.ts';
import type { SignInLink } from '../../user-tokens/sign-in-required.ts';
import type { Target } from './target.ts';

/**
 * A failure of a target with different texts for clients and the log. `message` is sent to clients. `detail` is for logs and
 * the admin server: it may contain the command and its output on stderr, and must not contain secrets.
 */
export class TargetFailure extends Error {
  readonly detail: string;
  /** Whether `message` is a predicate with the target as its subject, such as `exited with code 3`. */
  readonly isPredicate: boolean;
  /** The server does not accept a POST at this URL (405). */
  isRefusedMethod = false;
  /** The server, or who issues the credential, refused it; or it could not be asked for. */
  credential: 'refused' | 'unavailable' | undefined;
  /** The user has to sign in at the server. Only the user gets the link: neither message nor detail has it. */
  signIn: SignInLink | undefined;
  /** The same failure without words of the server, if `message` has some: guardrails cannot check them. */
  unquoted: TargetFailure | undefined;

  constructor(message: string, detail: string, isPredicate = false) {
    super(message);
    this.name = 'TargetFailure';
    this.detail = detail;
    this.isPredicate = isPredicate;
  }
}

/**
 * The end of a session while a call was in flight, which is not a failure of the target. `refused`: why its caller is no longer let in, for
 * the log only.
 */
export class SessionEnded extends TargetFailure {
  constructor(refused?: string) {
    const message =
      refused === undefined ? 'the session ended' : 'the session ended: its credential is no longer accepted';
    super(message, refused ?? message);
  }
}

/** A response with an error status, with headers and body, so that a 401 with its challenge can be passed to the client. */
export class UpstreamStatusError extends Error {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;

  constructor(status: number, headers: IncomingHttpHeaders, body: string) {
    super(`the server answered HTTP ${status}`);
    this.name = 'UpstreamStatusError';
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

/** The refusal (401, 403) of a credential of the gateway, which says nothing about the caller: for it, the target has failed. */
export class GatewayRefused extends TargetFailure {
  override readonly credential = 'refused';
}

/** Whether a server has answered with an error status. */
export const isErrorStatus = (error: unknown): boolean =>
  error instanceof UpstreamStatusError || error instanceof GatewayRefused;

/** Where the user has to sign in, if that is what a failure is about. */
export const signInOf = (error: unknown): SignInLink | undefined =>
  error instanceof TargetFailure ? error.signIn : undefined;

/** Text of a failure for the log. */
export const detailOf = (error: unknown): string =>
  error instanceof TargetFailure ? error.detail : messageOf(error);

/** Text of a failure for clients, with its target: `target "a" exited with code 3`, `target "a": no answer`. */
export function publicProblem(target: string, error: unknown, otherwise = ':'): string {
  if (error instanceof SessionEnded) return error.message;
  const joint = error instanceof TargetFailure && error.isPredicate ? '' : otherwise;
  return `target "${target}"${joint} ${messageOf(error)}`;
}

/**
 * The failure of a target that is not asked again yet, with the time until a request does so, in ms. `problem`: what is said of a
 * failure that has no text for clients.
 */
export function untilNextAttempt(failure: unknown, problem: string, wait: number): Error {
  const seconds = Math.ceil(Math.max(wait, 100) / 100) / 10;
  const when = `; the next attempt is made with a request after ${seconds} s`;
  if (!(failure instanceof TargetFailure)) return new Error(problem + when);
  const { message, detail, isPredicate, isRefusedMethod, credential, signIn, unquoted } = failure;
  const later = new TargetFailure(message + when, detail + when, isPredicate);
  return Object.assign(later, { isRefusedMethod, credential, signIn, unquoted });
}

/** Error text for a target that did not answer within that many ms. */
export const timeoutMessage = (milliseconds: number): string => `no answer within ${milliseconds / 1000} s`;

/** What lists say of a target that began to start that many ms ago; they may have waited for others for most of that time. */
export const startingMessage = (milliseconds: number): string =>
  `still starting, no answer for ${Math.round(milliseconds / 100) / 10} s`;

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

/** Settles like the promise, but rejects after `LIMITS.targetResponseWait` ms, after calling `onTimeout`. */
export function withTimeout<T>(
  promise: Promise<T>,
  { targetResponseWait }: Limits,
  onTimeout?: () => void,
  target: Pick<Target, 'endpoint'> = { endpoint: undefined },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      onTimeout?.();
      reject(timeoutFailure(target, timeoutMessage(targetResponseWait)));
    }, targetResponseWait);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
