/**
 * Whether a page has the origin of the server that it sends a request to; requests of other programs have none. A page that was
 * loaded without TLS is not one of a server that is reached over TLS: whoever is on the way can have written it.
 *
 * @param isTls whether the server is known to be reached over TLS; a proxy may end TLS in front of it without saying so
 */
export function isOwnOrigin(origin: string | undefined, host: string, isTls: boolean): boolean {
  return origin === undefined || origin === `https://${host}` || (!isTls && origin === `http://${host}`);
}

/** Whether a proxy says that its client uses TLS. Pages of other origins cannot send the header. */
export const isForwardedFromTls = (forwardedProto: string | undefined): boolean =>
  forwardedProto?.split(',')[0]?.trim().toLowerCase() === 'https';
