import { type LookupAddress, type LookupAllOptions, type LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { LIMITS } from '../../../core/limits.ts';
import { LruMap } from '../../../core/lru-map.ts';
import { LOOKUP_TIMEOUT, upstreamFailure } from './upstream-error.ts';

/** The system's resolver (getaddrinfo), which supports /etc/hosts, search domains and mDNS. */
type SystemLookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

type LookupCallback = (error: Error | null, addresses: readonly LookupAddress[]) => void;

/**
 * Looks up the addresses of upstreams. The system's resolver blocks one of libuv's threads until it answers, which can
 * take half a minute. To protect other lookups:
 *
 * - There is one lookup per name at a time, whatever number of connections wait for it, so it blocks one thread at most.
 * - Waiting connections fail after `LIMITS.hostLookupTimeout` (7 s). The lookup continues, and later connections use its result.
 * - While lookups of a name fail, its last known addresses are used (RFC 8767), and each use starts another lookup. If the
 *   resolver answers that the name does not exist, they are discarded.
 *
 * While lookups succeed, nothing is cached: each new connection uses the current addresses.
 */
export class HostLookup {
  readonly #system: SystemLookup;
  readonly #hosts = new LruMap<string, Host>(LIMITS.cachedHostLookups);

  constructor(system: SystemLookup = lookup) {
    this.#system = system;
  }

  /** For `lookup` of `net.connect`. */
  readonly forConnect: LookupFunction = (hostname, options, callback) => {
    this.#hostOf(hostname, options).addresses((error, addresses) => {
      const [first] = addresses;
      if (error !== null || first === undefined) callback(error, '', 0);
      else if (options.all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    });
  };

  /** Number of host names whose addresses are remembered. */
  get remembered(): number {
    return this.#hosts.size;
  }

  #hostOf(hostname: string, { hints = 0 }: LookupOptions): Host {
    let host = this.#hosts.get(hostname);
    if (host === undefined) {
      host = new Host((callback) => this.#system(hostname, { all: true, hints }, callback));
      this.#hosts.set(hostname, host);
    }
    return host;
  }
}

type BoundLookup = (callback: Parameters<SystemLookup>[2]) => void;

class Host {
  readonly #systemLookup: BoundLookup;
  /** Result of the last successful lookup. */
  #known: readonly LookupAddress[] | undefined;
  /** Whether the last lookup failed, or the current one is slow. */
  #isFailing = false;
  #isLookingUp = false;
  #isOverdue = false;
  #waiting: LookupCallback[] = [];

  constructor(systemLookup: BoundLookup) {
    this.#systemLookup = systemLookup;
  }

  addresses(callback: LookupCallback): void {
    const known = this.#known;
    if (this.#isFailing && known !== undefined) process.nextTick(callback, null, known);
    else if (this.#isOverdue) process.nextTick(callback, unresolved(), []);
    else this.#waiting.push(callback);
    if (!this.#isLookingUp) this.#lookUp();
  }

  #lookUp(): void {
    this.#isLookingUp = true;
    const slowTimer = setTimeout(() => {
      this.#isFailing = true;
      if (this.#known !== undefined) this.#answer(null, this.#known);
    }, LIMITS.hostLookupFallbackAfter);
    const deadline = setTimeout(() => {
      this.#isOverdue = true;
      this.#answer(unresolved(), []);
    }, LIMITS.hostLookupTimeout);
    this.#systemLookup((error, addresses) => {
      clearTimeout(slowTimer);
      clearTimeout(deadline);
      this.#isLookingUp = false;
      this.#isOverdue = false;
      this.#isFailing = error !== null;
      if (error === null) this.#known = addresses;
      else if (error.code === 'ENOTFOUND') this.#known = undefined;
      if (error !== null && this.#known !== undefined) this.#answer(null, this.#known);
      else this.#answer(error, addresses ?? []);
    });
  }

  #answer(error: Error | null, addresses: readonly LookupAddress[]): void {
    for (const waiting of this.#waiting.splice(0)) waiting(error, addresses);
  }
}

const unresolved = (): Error => upstreamFailure(LOOKUP_TIMEOUT, 'the host name lookup timed out');

/** Shared by the whole process, like the resolver's threads. */
export const hostLookup = new HostLookup();
