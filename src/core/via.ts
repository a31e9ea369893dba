/**
 * Name of this process in `Via` (RFC 9110 §7.6.3) of requests whose server a client chose. It recognizes them when they come
 * back.
 */
export const PSEUDONYM = `agctl-${process.pid}-${Math.random().toString(36).slice(2, 10)}`;

const ANY_PSEUDONYM = /(?:^|[\s,])agctl-\d+-/;

/** Whether a gateway, this or another one, sent the request to the host that its client chose. */
export const isSentByGateway = (via: string | undefined): boolean =>
  via !== undefined && ANY_PSEUDONYM.test(via);
