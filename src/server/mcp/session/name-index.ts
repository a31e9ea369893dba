import type { Limits } from '../../../core/limits.ts';
import type { Connection } from '../connection/connection.ts';
import { type ItemKind, LIST_METHODS, type ListMethod } from '../names/names.ts';

type RequestList = (method: string, list: ListMethod, connections: readonly Connection[]) => Promise<void>;

/** One list of one target. */
interface KnownList {
  /** Undefined if the request failed or the list has more than `LIMITS.listedNames` items. */
  readonly names: ReadonlySet<string> | undefined;
  /** Time of the response, in ms of `performance.now()`. */
  readonly receivedAt: number;
  /** The target sent `list_changed` after the request. */
  isOutdated: boolean;
  /** Number of lists in a row that were outdated as soon as they arrived. */
  outdatedAtOnce: number;
}

/** After this many ms, a `list_changed` is not an effect of the list request, as it is with some servers. */
const EFFECT_OF_LIST = 1_000;

/**
 * Cache of the names that the targets of a session have listed. With names without prefix, it finds the target of a call
 * without a list request to all targets. A list is requested again after `list_changed`, and for an unknown name, at most
 * once per `LIMITS.relistInterval`. Some servers send `list_changed` with each list: it is requested again after a time that
 * doubles up to that interval, and used until then.
 */
export class NameIndex {
  readonly #known = new Map<string, KnownList>();
  /** List requests in flight by method. Concurrent calls share them. */
  readonly #pending = new Map<string, Promise<void>>();
  readonly #refreshedAt = new Map<string, number>();
  /** Number of changes by target: a list that was requested before a change is outdated. */
  readonly #changes = new Map<string, number>();

  readonly #limits: Limits;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Number of changes of lists of that target so far, for `record`. */
  changesOf({ target }: Connection): number {
    return this.#changes.get(target.name) ?? 0;
  }

  /**
   * Caches the response to a list request; `items` is undefined if the request failed. `changes` is the value of `changesOf`
   * from before the request.
   */
  record(
    connection: Connection,
    method: string,
    items: readonly { readonly name: string }[] | undefined,
    changes: number,
  ): void {
    const isKept = items !== undefined && items.length <= this.#limits.listedNames;
    const key = keyOf(connection, method);
    const before = this.#known.get(key);
    const list: KnownList = {
      names: isKept ? new Set(items.map(({ name }) => name)) : undefined,
      receivedAt: performance.now(),
      isOutdated: false,
      outdatedAtOnce: before?.isOutdated === true ? before.outdatedAtOnce : 0,
    };
    this.#known.set(key, list);
    if (changes !== this.changesOf(connection)) outdate(list);
  }

  /** Marks lists as outdated, after `notifications/<kind>/list_changed` or a reconnect of the target. */
  changed(connection: Connection, notification: string): void {
    this.#changes.set(connection.target.name, this.changesOf(connection) + 1);
    const kind = notification.split('/')[1];
    for (const method of Object.keys(LIST_METHODS)) {
      const known = method.startsWith(`${kind}/`) ? this.#known.get(keyOf(connection, method)) : undefined;
      if (known !== undefined) outdate(known);
    }
  }

  /** Returns the targets that list an item of that name. `request` sends list requests and records the responses. */
  async ownersOf(
    connections: readonly Connection[],
    kind: ItemKind,
    name: string,
    request: RequestList,
  ): Promise<Connection[]> {
    const method = Object.keys(LIST_METHODS).find((key) => LIST_METHODS[key]?.kind === kind) ?? '';
    const owners = (): Connection[] =>
      connections.filter((connection) => this.#known.get(keyOf(connection, method))?.names?.has(name));
    const unknown = connections.filter((connection) => this.isDue(connection, method));
    if (unknown.length > 0) await this.#request(request, method, unknown);
    const known = owners();
    if (known.length > 0) return known;
    // A list that changed while it was requested must be requested again.
    const isFresh =
      unknown.length === connections.length &&
      !connections.some((connection) => this.#known.get(keyOf(connection, method))?.isOutdated !== false);
    if (isFresh || !this.#mayRefresh(method)) return known;
    await this.#request(request, method, connections);
    return owners();
  }

  /** Whether a list of that target should be requested, because it is not known or has changed. */
  isDue(connection: Connection, method: string): boolean {
    const known = this.#known.get(keyOf(connection, method));
    if (known === undefined) return true;
    const { names, receivedAt, isOutdated, outdatedAtOnce } = known;
    if (names !== undefined && !isOutdated) return false;
    const { relistInterval, retryDelayMin } = this.#limits;
    // Once is a change like any other.
    const backOff = outdatedAtOnce <= 1 ? 0 : retryDelayMin * 2 ** outdatedAtOnce;
    const wait = isOutdated ? Math.min(relistInterval, backOff) : relistInterval;
    return performance.now() - receivedAt > wait;
  }

  #mayRefresh(method: string): boolean {
    // Sharing a request that is in flight costs nothing.
    if (this.#pending.has(method)) return true;
    const since = performance.now() - (this.#refreshedAt.get(method) ?? Number.NEGATIVE_INFINITY);
    if (since <= this.#limits.relistInterval) return false;
    this.#refreshedAt.set(method, performance.now());
    return true;
  }

  #request(request: RequestList, method: string, connections: readonly Connection[]): Promise<void> {
    const pending = this.#pending.get(method);
    const list = LIST_METHODS[method];
    if (pending !== undefined || list === undefined) return pending ?? Promise.resolve();
    const sent = request(method, list, connections).finally(() => this.#pending.delete(method));
    this.#pending.set(method, sent);
    return sent;
  }
}

const keyOf = ({ target }: Connection, method: string): string => `${target.name} ${method}`;

function outdate(list: KnownList): void {
  if (list.isOutdated) return;
  list.isOutdated = true;
  list.outdatedAtOnce = performance.now() - list.receivedAt < EFFECT_OF_LIST ? list.outdatedAtOnce + 1 : 0;
}
