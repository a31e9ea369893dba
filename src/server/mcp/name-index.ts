import { LIMITS } from '../../core/limits.ts';
import type { Connection } from './connection.ts';
import { type ItemKind, LIST_METHODS, type ListMethod } from './names.ts';

type AskForList = (method: string, list: ListMethod, connections: readonly Connection[]) => Promise<void>;

/** What is known of one list of one target. */
interface Known {
  /** Undefined when the target could not be asked, or has too many to remember. */
  readonly names: ReadonlySet<string> | undefined;
  readonly askedAt: number;
}

/**
 * The names that the targets of a session have listed, for names without prefix: a call finds its target without asking
 * all of them. A list is asked for again after `list_changed`, and when a name is unknown, then at most once in
 * `LIMITS.relist`.
 */
export class NameIndex {
  readonly #known = new Map<string, Known>();
  /** One question at a time for each list; calls at the same time share it. */
  readonly #asking = new Map<string, Promise<void>>();
  readonly #refreshedAt = new Map<string, number>();
  /** Counts changes, by target: a list that was asked for before a change is not kept. */
  readonly #changes = new Map<string, number>();

  /** How often lists of that target have changed; to be handed to `note`. */
  changesOf({ target }: Connection): number {
    return this.#changes.get(target.name) ?? 0;
  }

  /** A target has answered a list, or could not (`items` is undefined). `changes` is from before it was asked. */
  note(
    connection: Connection,
    method: string,
    items: readonly { readonly name: string }[] | undefined,
    changes: number,
  ): void {
    if (changes !== this.changesOf(connection)) return;
    const isKept = items !== undefined && items.length <= LIMITS.listedNames;
    const names = isKept ? new Set(items.map(({ name }) => name)) : undefined;
    this.#known.set(keyOf(connection, method), { names, askedAt: performance.now() });
  }

  /** `notifications/<kind>/list_changed` came, or the target has joined again. */
  changed(connection: Connection, notification: string): void {
    this.#changes.set(connection.target.name, this.changesOf(connection) + 1);
    const kind = notification.split('/')[1];
    for (const method of Object.keys(LIST_METHODS))
      if (method.startsWith(`${kind}/`)) this.#known.delete(keyOf(connection, method));
  }

  /** The targets that list an item under that name. `ask` asks some of the connections for a list, and notes the answers. */
  async ownersOf(
    connections: readonly Connection[],
    kind: ItemKind,
    name: string,
    ask: AskForList,
  ): Promise<Connection[]> {
    const method = Object.keys(LIST_METHODS).find((key) => LIST_METHODS[key]?.kind === kind) as string;
    const owners = (): Connection[] =>
      connections.filter((connection) => this.#known.get(keyOf(connection, method))?.names?.has(name));
    const unknown = connections.filter((connection) => this.#isDue(connection, method));
    if (unknown.length > 0) await this.#ask(ask, method, unknown);
    const known = owners();
    if (known.length > 0) return known;
    // A list that changed while it was asked for is due again.
    const isFresh =
      unknown.length === connections.length &&
      !connections.some((connection) => this.#isDue(connection, method));
    if (isFresh || !this.#mayRefresh(method)) return known;
    await this.#ask(ask, method, connections);
    return owners();
  }

  #isDue(connection: Connection, method: string): boolean {
    const known = this.#known.get(keyOf(connection, method));
    if (known === undefined) return true;
    return known.names === undefined && performance.now() - known.askedAt > LIMITS.relist;
  }

  #mayRefresh(method: string): boolean {
    // Whoever finds a question open shares its answer, which costs nothing.
    if (this.#asking.has(method)) return true;
    const since = performance.now() - (this.#refreshedAt.get(method) ?? Number.NEGATIVE_INFINITY);
    if (since <= LIMITS.relist) return false;
    this.#refreshedAt.set(method, performance.now());
    return true;
  }

  #ask(ask: AskForList, method: string, connections: readonly Connection[]): Promise<void> {
    const open = this.#asking.get(method);
    if (open !== undefined) return open;
    const asked = ask(method, LIST_METHODS[method] as ListMethod, connections).finally(() =>
      this.#asking.delete(method),
    );
    this.#asking.set(method, asked);
    return asked;
  }
}

const keyOf = ({ target }: Connection, method: string): string => `${target.name} ${method}`;
