import { membersOf, textIn } from '../../../core/foreign.ts';
import type { Limits } from '../../../core/limits.ts';
import { type ClientHeaders, NO_HEADERS } from '../connection/client-headers.ts';
import { SubscribedResources } from '../connection/subscribed-resources.ts';
import type { RpcMessage } from '../protocol/message.ts';
import { withSubscription } from '../protocol/meta-text.ts';
import { META, notificationMessage } from '../protocol/protocol.ts';

/** The filter of `subscriptions/listen` ("Notification Filter"). */
export interface NotificationFilter {
  readonly toolsListChanged?: boolean;
  readonly promptsListChanged?: boolean;
  readonly resourcesListChanged?: boolean;
  readonly resourceSubscriptions?: readonly string[];
}

/** Lists whose changes clients can listen to: the capability, and the member of the filter. */
export const LISTS = [
  ['tools', 'toolsListChanged'],
  ['prompts', 'promptsListChanged'],
  ['resources', 'resourcesListChanged'],
] as const;

interface Subscription {
  readonly filter: NotificationFilter;
  /** Nothing may be sent before the acknowledgment. */
  readonly isAcknowledged: boolean;
}

interface Host {
  /** Passes a notification to the client, on the stream of that request. */
  notify(text: string, outerId: number): void;
  /** Sends a request to the server. Resolves to its response, or undefined after a failure. */
  request(method: string, params: object, headers: ClientHeaders): Promise<RpcMessage | undefined>;
}

/** The requests `subscriptions/listen` of one caller at a server that only has `resources/subscribe` and `list_changed`. */
export class ViewedSubscriptions {
  readonly #capabilities: Readonly<Record<string, unknown>>;
  readonly #host: Host;
  /** What each request listens to, by the id of the request. */
  readonly #open = new Map<number, Subscription>();
  /** Resources that are subscribed to at the server. */
  readonly #subscribed: SubscribedResources;

  constructor(capabilities: Readonly<Record<string, unknown>>, limits: Limits, host: Host) {
    this.#capabilities = capabilities;
    this.#subscribed = new SubscribedResources(limits);
    this.#host = host;
  }

  /** Subscribes and acknowledges what the server supports. */
  open(id: number, { params }: RpcMessage, headers: ClientHeaders): void {
    const filter = filterOf(params['notifications']);
    const lists = LISTS.filter(
      ([kind, member]) => filter[member] === true && this.#announces(kind, 'listChanged'),
    );
    const agreed = Object.fromEntries(lists.map(([, member]) => [member, true]));
    const uris = this.#announces('resources', 'subscribe') ? (filter.resourceSubscriptions ?? []) : [];
    this.#open.set(id, { filter: { ...agreed, resourceSubscriptions: uris }, isAcknowledged: false });
    void this.#subscribe(uris, headers).then((resourceSubscriptions) => {
      if (!this.#open.has(id)) {
        this.#unsubscribeUnused(headers);
        return;
      }
      const notifications = { ...agreed, ...(resourceSubscriptions.length > 0 && { resourceSubscriptions }) };
      this.#open.set(id, { filter: notifications, isAcknowledged: true });
      const text = notificationMessage('notifications/subscriptions/acknowledged', {
        _meta: { [META.subscription]: id },
        notifications,
      });
      this.#host.notify(text, id);
    });
  }

  /** Ends one. Returns false for another id. */
  close(id: number): boolean {
    if (!this.#open.delete(id)) return false;
    this.#unsubscribeUnused(NO_HEADERS);
    return true;
  }

  /** Passes a notification of the server to those who listen to it. */
  receive({ method, params, text }: RpcMessage): void {
    const changed = LISTS.find(([kind]) => method === `notifications/${kind}/list_changed`);
    const uri = method === 'notifications/resources/updated' ? textIn(params['uri']) : undefined;
    for (const [id, { filter, isAcknowledged }] of this.#open) {
      if (!isAcknowledged) continue;
      const isAwaited =
        uri === undefined
          ? changed !== undefined && filter[changed[1]] === true
          : filter.resourceSubscriptions?.some((own) => contains(own, uri));
      if (isAwaited === true) this.#host.notify(withSubscription(text, String(id)), id);
    }
  }

  #announces(kind: string, feature: string): boolean {
    return membersOf(this.#capabilities[kind])[feature] === true;
  }

  /** Returns those of the resources that the server let the caller subscribe to. */
  async #subscribe(uris: readonly string[], headers: ClientHeaders): Promise<string[]> {
    const wanted = [...new Set(uris)];
    const isSubscribed = await Promise.all(
      wanted.map(async (uri) => {
        if (this.#subscribed.has(uri)) return true;
        if (this.#subscribed.add(uri) !== undefined) return false;
        const response = await this.#host.request('resources/subscribe', { uri }, headers);
        const isAccepted = response !== undefined && response.error === undefined;
        if (!isAccepted) this.#subscribed.delete(uri);
        return isAccepted;
      }),
    );
    return wanted.filter((_uri, index) => isSubscribed[index]);
  }

  #unsubscribeUnused(headers: ClientHeaders): void {
    const used = new Set(
      [...this.#open.values()].flatMap(({ filter }) => filter.resourceSubscriptions ?? []),
    );
    for (const uri of this.#subscribed) {
      if (used.has(uri)) continue;
      this.#subscribed.delete(uri);
      void this.#host.request('resources/unsubscribe', { uri }, headers);
    }
  }
}

/** Reads a filter; members that are not of the expected type count as absent. */
export function filterOf(value: unknown): NotificationFilter {
  const given = membersOf(value);
  const lists = LISTS.filter(([, member]) => given[member] === true).map(
    ([, member]) => [member, true] as const,
  );
  const uris = given['resourceSubscriptions'];
  return {
    ...Object.fromEntries(lists),
    ...(Array.isArray(uris) && {
      resourceSubscriptions: uris.filter((uri): uri is string => typeof uri === 'string'),
    }),
  };
}

/** A resource may be part of the one that was subscribed to (MCP schema, `resources/updated`). */
const contains = (own: string, uri: string): boolean =>
  uri === own || (uri.startsWith(own) && /[/?#]/.test(own.slice(-1) + uri.charAt(own.length)));
