/**
 * Name of this process in `Via` (RFC 9110 §7.6.3) of requests whose server a client chose. It recognizes them when they come
 * back.
 */
export const PSEUDONYM = `agctl-${process.pid}-${Math.random().toString(36).slice(2, 10)}`;

const ANY_PSEUDONYM = /(?:^|[\s,])agctl-\d+-/;

/** Whether the client of a gateway, this or another one, chose the server that got a request. */
export const isChosenByClient = (via: string | undefined): boolean =>
  via !== undefined && ANY_PSEUDONYM.test(via);
