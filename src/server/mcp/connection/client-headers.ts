import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { CredentialOrigin } from '../../kernel/request/shared-slots.ts';

/** What HTTP targets may get of a client's request. */
export interface ClientHeaders {
  /** Its end-to-end headers, as alternating names and values. */
  readonly list: readonly string[];
  /**
   * The request, from which credentials of targets are computed. Undefined if no target has any, so that sessions do not keep
   * requests, and for messages of the gateway itself.
   */
  readonly request: RequestContext | undefined;
  /** Names of headers with a credential of the route, which targets with their own do not get. */
  readonly ofRoute?: ReadonlySet<string> | undefined;
  /** Whose the credential of the route is, if it has one. */
  readonly origin?: CredentialOrigin | undefined;
}

/** For messages that are sent again later: with the credential of the latest request, and without keeping this one. */
export const forLater = ({ list, origin }: ClientHeaders): ClientHeaders => ({
  list,
  request: undefined,
  origin,
});

/** For messages that belong to no request of a client. */
export const NO_HEADERS: ClientHeaders = { list: [], request: undefined };
