import { isSensitiveName } from '../../core/credentials.ts';
import { isRecord, membersOf } from '../../core/foreign.ts';
import { endpointAt } from '../../server/llm/request/endpoints.ts';
import { META } from '../../server/mcp/protocol/protocol.ts';
import { canonical, type Difference, differences } from './compare.ts';
import { isGivenUp } from './cut.ts';
import type { Body, Cassette, Exchange, RecordedRequest } from './format.ts';
import type { Ignored } from './ignored.ts';
import { RedactedForms } from './redacted-forms.ts';

/** A request of a client, to be answered by a recorded one. */
export interface Asked extends Pick<RecordedRequest, 'method' | 'target' | 'body'> {
  readonly gateway: string;
}

/** No recorded request is the same. */
export interface Unmatched {
  readonly asked: Asked;
  /** The recorded request that differs least, of those with the same method and path. */
  readonly nearest: { readonly exchange: Exchange; readonly differences: readonly Difference[] } | undefined;
  /** Whether anything was recorded at this path. */
  readonly isKnownPath: boolean;
}

/**
 * What identifies a JSON-RPC call and who makes it, but not what is asked: ids, progress tokens, trace contexts, and in revision
 * 2026-07-28 the client.
 */
const OF_CALLS = ['id', 'params._meta'];
/** The request that is cancelled or that progresses, by its id. */
const OF_NOTIFICATIONS = [...OF_CALLS, 'params.requestId', 'params.progressToken', 'params.reason'];

/** Who calls a model, for whom and in which conversation, but not what is asked. */
const OF_MODEL_CALLS = [
  'user',
  'metadata.user_id',
  'safety_identifier',
  'prompt_cache_key',
  'client_metadata',
  'input[*].id',
];

/** Methods whose parameters say who the client is: the recorded request that is nearest answers them. */
const INTRODUCTIONS = new Set(['initialize', 'server/discover']);

/** How often each recorded request has been answered. */
export type Counts = Map<string, number>;

/** Finds recorded exchanges. */
export class Tape {
  readonly #exchanges: readonly Exchange[];
  readonly #ignored: Ignored;
  readonly #byKey = new Map<string, Exchange[]>();
  readonly #counts: Counts = new Map();

  constructor({ exchanges }: Cassette, ignored: Ignored) {
    this.#exchanges = exchanges;
    this.#ignored = ignored;
    for (const exchange of this.#exchanges) {
      const key = this.#keyOf(exchange);
      const same = this.#byKey.get(key);
      if (same === undefined) this.#byKey.set(key, [exchange]);
      else same.push(exchange);
    }
    for (const [key, same] of this.#byKey) this.#byKey.set(key, withoutGivenUp(same));
  }

  /**
   * The exchange that answers a request: of equal ones the first, then the second, and the last again and again, without those that the
   * client had given up before one was answered. Those of the session
   * `within` are counted by its `counts`; others answer if it has none.
   */
  find(asked: Asked, within?: { readonly label: string; readonly counts: Counts }): Exchange | Unmatched {
    const key = this.#keyOf({ gateway: asked.gateway, request: asked });
    const equal = this.#byKey.get(key) ?? [];
    const own = within === undefined ? [] : equal.filter(({ session }) => session === within.label);
    if (within !== undefined && own.length > 0) return next(own, key, within.counts);
    const [first] = equal;
    if (first !== undefined) return next(equal, key, this.#counts);
    return this.#nearest(asked);
  }

  #nearest(asked: Asked): Exchange | Unmatched {
    const path = pathOf(asked.target);
    const atPath = this.#exchanges.filter(
      ({ gateway, request }) => gateway === asked.gateway && pathOf(request.target) === path,
    );
    const method = rpcMethod(asked.body);
    const revision = revisionOf(asked.body);
    const candidates = atPath.filter(
      ({ request }) =>
        request.method === asked.method &&
        rpcMethod(request.body) === method &&
        revisionOf(request.body) === revision,
    );
    const ignored = this.#ignoredIn(asked);
    const forms = new RedactedForms();
    let nearest: Unmatched['nearest'];
    for (const exchange of candidates) {
      const found = differences(comparable(exchange.request), comparable(asked), ignored, forms);
      if (nearest === undefined || found.length < nearest.differences.length)
        nearest = { exchange, differences: found };
    }
    const isAnswer =
      nearest !== undefined && (nearest.differences.length === 0 || INTRODUCTIONS.has(method ?? ''));
    if (nearest === undefined || !isAnswer) return { asked, nearest, isKnownPath: atPath.length > 0 };
    const key = this.#keyOf(nearest.exchange);
    return next(this.#byKey.get(key) ?? [nearest.exchange], key, this.#counts);
  }

  #keyOf({
    gateway,
    request,
  }: Pick<Exchange, 'gateway'> & { request: Omit<RecordedRequest, 'headers'> }): string {
    const { method, target, body } = request;
    const ignored = this.#ignoredIn(request);
    const content =
      body !== undefined && 'json' in body ? canonical(body.json, ignored) : JSON.stringify(body);
    return `${gateway} ${method} ${canonicalTarget(target)} ${revisionOf(body)} ${content}`;
  }

  #ignoredIn({ method, target, body }: Pick<RecordedRequest, 'method' | 'target' | 'body'>): Ignored {
    const json = membersOf(jsonOf(body));
    if (json['jsonrpc'] === '2.0') return this.#ignored.and('id' in json ? OF_CALLS : OF_NOTIFICATIONS);
    return endpointAt(method, pathOf(target)) === undefined
      ? this.#ignored
      : this.#ignored.and(OF_MODEL_CALLS);
  }
}

/** A client may be more patient now. */
function withoutGivenUp(equal: Exchange[]): Exchange[] {
  const last = equal.findLastIndex((exchange) => !isGivenUp(exchange));
  return equal.filter((exchange, at) => at > last || !isGivenUp(exchange));
}

function next(equal: readonly Exchange[], key: string, counts: Counts): Exchange {
  const count = counts.get(key) ?? 0;
  counts.set(key, count + 1);
  const exchange = equal[Math.min(count, equal.length - 1)];
  if (exchange === undefined) throw new Error('there is no exchange of this key');
  return exchange;
}

export const jsonOf = (body: Body | undefined): unknown =>
  body !== undefined && 'json' in body ? body.json : undefined;

/** The method of a JSON-RPC message. */
export function rpcMethod(body: Body | undefined): string | undefined {
  const json = jsonOf(body);
  if (!isRecord(json) || json['jsonrpc'] !== '2.0') return undefined;
  return typeof json['method'] === 'string' ? json['method'] : '';
}

/** The revision of MCP that a stateless request names: its results differ from those of sessions. */
const revisionOf = (body: Body | undefined): unknown =>
  membersOf(membersOf(membersOf(jsonOf(body))['params'])['_meta'])[META.version];

export const pathOf = (target: string): string => target.split('?')[0] ?? '';

/** Parameters in one order, without credentials. */
function canonicalTarget(target: string): string {
  const [path = '', query = ''] = target.split('?');
  const parameters = [...new URLSearchParams(query)].filter(([name]) => !isSensitiveName(name));
  return `${path}?${parameters
    .map((pair) => pair.map(encodeURIComponent).join('='))
    .sort()
    .join('&')}`;
}

/** The parts of a request that must be equal. JSON is compared by its own members, so that their paths are those of the body. */
function comparable({ target, body }: Omit<Asked, 'gateway' | 'method'>): unknown {
  const json = jsonOf(body);
  const query = canonicalTarget(target).split('?')[1] ?? '';
  const rest = isRecord(json) ? json : { body: json ?? body };
  return query === '' ? rest : { ...rest, '?': query };
}
