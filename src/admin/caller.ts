import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback } from '../core/listen.ts';
import { type Caller, roleOf } from '../server/admin-access/caller.ts';
import { localRole, shown } from '../server/admin-access/gateway-caller.ts';
import type { AdminRoles } from '../server/admin-access/settings.ts';
import { CALLER_HEADER, readCaller } from '../server/admin-access/signed-caller.ts';
import { canonicalAddress } from '../server/kernel/request/client-connection.ts';
import { forwardedField } from '../server/kernel/request/forwarding.ts';
import { Networks } from '../server/kernel/request/networks.ts';
import { processSecret } from '../server/kernel/request/shared-slots.ts';
import type { Admin } from './sources.ts';

/**
 * Who sends a request to the admin server. Undefined for a request that pretends to come from the pages on a gateway, or comes from
 * those of another one.
 */
export function callerOf(request: IncomingMessage, admin: Admin): Caller | undefined {
  const { runtime, config } = admin.served();
  const header = request.headers[CALLER_HEADER];
  if (header !== undefined) {
    const secret = processSecret.get(runtime.settings);
    const target = { method: request.method ?? '', target: request.url ?? '' };
    return secret && readCaller(secret.value(), target, String(header), Date.now());
  }
  return { ...directCaller(request, config.config.adminRoles, admin.isUnixSocket), isDirect: true };
}

function directCaller(
  request: IncomingMessage,
  roles: AdminRoles | undefined,
  isUnixSocket: boolean,
): Caller {
  if (isUnixSocket) return { actor: { kind: 'local' }, from: { address: 'unix' }, role: 'editor' };
  // A client that has reset its connection has none, although its request is still read.
  const { remoteAddress = '' } = request.socket;
  const address = canonicalAddress(remoteAddress);
  const behind = roles?.proxy && proxyCaller(request, address, roles, roles.proxy);
  if (behind !== undefined) return behind;
  const field = forwardedField(Object.keys(request.headers));
  const isLocal = isLoopback(address) && field === undefined;
  const actor = { kind: isLocal ? 'local' : 'remote' } as const;
  const from = { address };
  if (roles === undefined) return { actor, from, role: 'editor' };
  if (isLocal) return { actor, from, ...localRole(roles) };
  return { actor, from, role: undefined, reason: notKnown(address, field, roles) };
}

/** Why a caller is neither a program of this machine nor behind the proxy. */
function notKnown(address: string, field: string | undefined, { proxy }: AdminRoles): string {
  const notProxy =
    proxy === undefined ? '' : `, and ${address} is not an address of \`config.adminRoles.proxy\``;
  if (address === '') return 'the connection has ended';
  if (!isLoopback(address))
    return proxy === undefined
      ? `${address} is another machine, and \`config.adminRoles.proxy\` is not set`
      : `${address} is another machine, and not an address of \`config.adminRoles.proxy\``;
  return `programs of this machine do not send the header \`${field}\`, so something has forwarded the request${notProxy}`;
}

/**
 * The caller that a proxy names. Undefined if the connection comes from elsewhere. Without its headers, a proxy has signed nobody in (nginx
 * leaves out those that are empty), so no program at its address is local.
 */
function proxyCaller(
  { headersDistinct }: IncomingMessage,
  address: string,
  roles: AdminRoles,
  { addresses, user, groups, separator }: NonNullable<AdminRoles['proxy']>,
): Caller | undefined {
  if (!new Networks(addresses).includes(address)) return undefined;
  const refused = (reason: string): Caller => ({
    actor: { kind: 'proxy' },
    from: { address, proxy: address },
    role: undefined,
    reason,
  });
  for (const name of [user, groups])
    if ((headersDistinct[name]?.length ?? 0) > 1)
      return refused(`the proxy has sent \`${name}\` twice: it must replace the header of the client`);
  const name = trimmed(utf8In(headersDistinct[user]?.[0]));
  if (name === '') return refused(`the proxy has sent no \`${user}\``);
  const names = utf8In(headersDistinct[groups]?.[0])
    .split(separator)
    .map(trimmed)
    .filter((each) => each !== '');
  // Each proxy appends who it got the request from.
  const client = headersDistinct['x-forwarded-for']?.at(-1)?.split(',').at(-1)?.trim() ?? '';
  return {
    actor: { kind: 'proxy', name },
    from: { address: isIP(client) === 0 ? address : client, proxy: address },
    role: roleOf(names, roles),
    reason: `\`${groups}\` is ${shown(names)}`,
  };
}

/**
 * Text of a header, whose bytes Node.js reads as Latin-1 (grafana/grafana#44744, arkime/arkime#3951): proxies send UTF-8. What is not
 * UTF-8 stays Latin-1.
 */
function utf8In(header = ''): string {
  const bytes = Buffer.from(header, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : header;
}

/** Without the white space of HTTP (RFC 9110 §5.6.3). Other spaces, such as U+00A0, are part of a name. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isSpace(text[start])) start += 1;
  while (end > start && isSpace(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

const isSpace = (character: string | undefined): boolean => character === ' ' || character === '\t';
