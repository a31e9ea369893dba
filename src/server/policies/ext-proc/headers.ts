import type { HeaderList } from '../../kernel/request/header-list.ts';
import { isSettableHeader } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { PathMode } from '../../kernel/request/request-target.ts';
import type { HeaderMutation } from '../envoy/external-processor.ts';
import { applyHeaderOptions, headerText } from '../envoy/messages.ts';
import { setRequestPart } from '../rewrite/request-part.ts';

/** `HeaderMap`: names in lower case. Services read pseudo-headers in either field of a value. */
function headerMap(headers: HeaderList, pseudo: Readonly<Record<string, string>>): object {
  const { raw } = headers;
  const values: object[] = Object.entries(pseudo).map(([key, value]) => ({
    key,
    value,
    raw_value: Buffer.from(value, 'latin1'),
  }));
  for (let at = 0; at < raw.length; at += 2)
    values.push({ key: (raw[at] ?? '').toLowerCase(), raw_value: Buffer.from(raw[at + 1] ?? '', 'latin1') });
  return { headers: values };
}

export const requestHeaderMap = (ctx: RequestContext): object =>
  headerMap(ctx.headers, {
    ':method': ctx.method,
    ':path': ctx.path + ctx.query,
    ':authority': ctx.host,
    ':scheme': ctx.client.scheme,
  });

export const replyHeaderMap = ({ status, headers }: Reply): object =>
  headerMap(headers, { ':status': String(status) });

/** Changes a request as upstream does: method, path and host too, if their values are valid. */
export function changeRequestHeaders(ctx: RequestContext, mutation: HeaderMutation, paths: PathMode): void {
  change(ctx.headers, mutation);
  for (const { header } of mutation.set) {
    const name = header.key.toLowerCase() === 'host' ? ':authority' : header.key;
    if (name.startsWith(':')) setRequestPart(ctx, name, headerText(header), paths);
  }
}

export function changeReplyHeaders(reply: Reply, mutation: HeaderMutation): void {
  change(reply.headers, mutation);
  for (const { header } of mutation.set) {
    const text = headerText(header);
    if (header.key === ':status' && /^[2-5]\d\d$/.test(text)) reply.status = Number(text);
  }
}

/** Fields for the length and recipient of the message, and those of its connection, are not the service's to change. */
function change(headers: HeaderList, { set, remove }: HeaderMutation): void {
  for (const name of remove) if (isSettableHeader(name)) headers.delete(name);
  applyHeaderOptions(headers, set);
}
