import type { Refusal } from '../../credentials/subject-token.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { CredentialOrigin } from '../../kernel/request/shared-slots.ts';
import type { Upstream } from '../../transport/upstream/upstream.ts';
import type { UpstreamRequest } from '../../transport/upstream/upstream-request.ts';
import type { ClientHeaders } from './client-headers.ts';

/**
 * What requests to a target carry for one caller. It has what its tokens are computed from, and not the request: a session may
 * send with it after the request has ended.
 */
export interface CallerCredential {
  /** Tells callers apart whose tokens differ. */
  readonly keys: readonly string[];
  /** Whose credential it is; undefined if it only changes headers. */
  readonly origin: CredentialOrigin | undefined;
  /** Completes a request, after all other changes to it. Rejects with a `TargetFailure` if a token cannot be had. */
  complete(request: UpstreamRequest, upstream: Upstream): Promise<UpstreamRequest>;
  /**
   * The server has refused what a completed request carried. Resolves to whether another attempt may carry something else. Rejects
   * as `complete`. Absent if nothing can be done about it.
   */
  readonly refused?: ((refusal: Refusal, upstream: Upstream) => Promise<boolean>) | undefined;
  /** Removes tokens that were sent from text of the server. */
  clean(text: string): string;
}

/** Credentials and header changes of one target, compiled from its `policies`. */
export interface CompiledCredentials {
  /** Whether they depend on the client's request. */
  readonly readsRequest: boolean;
  /** Whether users sign in at the server. */
  readonly signsIn: boolean;
  /**
   * Those of a request, or of the gateway itself. `ofRoute`: headers with credentials of the route, which are not sent. Never
   * throws: what a request lacks is the failure of `complete`.
   */
  of(request: RequestContext | undefined, ofRoute?: ReadonlySet<string>): CallerCredential;
  close(): Promise<void>;
}

/**
 * The credentials of a target in the active configuration, if it has any. Sessions that were opened under an earlier one go on with
 * them: a server may refuse the former key while a client still uses its session.
 */
export class TargetCredentials {
  /** Says which server they are for: its name, address and how it is connected to. */
  readonly #server: string;
  readonly #own: CompiledCredentials | undefined;
  #current: CompiledCredentials | undefined;

  constructor(server: string, compiled: CompiledCredentials | undefined) {
    this.#server = server;
    this.#own = compiled;
    this.#current = compiled;
  }

  get current(): CompiledCredentials | undefined {
    return this.#current;
  }

  /** Takes over those that `active` has for this server; without one, its own are in use again, as those of others may be closed. */
  follow(active: readonly WithCredentials[]): void {
    const same = active
      .flatMap(({ credentials }) => credentials ?? [])
      .find((each) => each.#server === this.#server);
    this.#current = (same ?? this).#own;
  }

  async close(): Promise<void> {
    await this.#own?.close();
  }
}

/** A target, as far as its credentials go. */
type WithCredentials = Readonly<{ credentials?: TargetCredentials | undefined }>;

/** Whether credentials of one of the targets are computed from requests. */
export const readRequests = (targets: readonly WithCredentials[]): boolean =>
  targets.some(({ credentials }) => credentials?.current?.readsRequest === true);

/** What tells the caller of a request apart from others, beside its headers, at all targets. */
export const callerKeys = (
  targets: readonly WithCredentials[],
  request: RequestContext | undefined,
): string[] =>
  request === undefined
    ? []
    : targets.flatMap(({ credentials }) => {
        const current = credentials?.current;
        return current?.readsRequest === true ? current.of(request).keys : [];
      });

/**
 * The credentials with which one channel sends. Requests of a client carry its own. What the gateway sends for the session, and no
 * request of the client has caused (DELETE at its end, a GET stream that is opened again, `ping` and its answer, cancellations),
 * carries those of the latest request: all requests of a session are of one caller. Before any, only what does not depend on
 * requests is sent.
 */
export class ChannelCredentials {
  readonly #credentials: TargetCredentials | undefined;
  /** Those that the latest credential is of. */
  #compiled: CompiledCredentials | undefined;
  #latest: CallerCredential | undefined;

  constructor(credentials: TargetCredentials | undefined) {
    this.#credentials = credentials;
  }

  /** Undefined if the target has none. Reads the request at once. */
  of(headers?: ClientHeaders): CallerCredential | undefined {
    const compiled = this.#credentials?.current;
    if (compiled !== this.#compiled) this.#latest = undefined;
    this.#compiled = compiled;
    const { request, ofRoute } = headers ?? {};
    if (request !== undefined || ofRoute !== undefined) this.#latest = compiled?.of(request, ofRoute);
    this.#latest ??= compiled?.of(undefined);
    return this.#latest;
  }
}
