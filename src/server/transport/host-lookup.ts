import { type LookupAddress, type LookupAllOptions, type LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { LIMITS } from '../../core/limits.ts';
import { failure, UNRESOLVED } from './upstream-error.ts';

/** The system's resolver (getaddrinfo): it knows /etc/hosts, search domains and mDNS, as no resolver of our own would. */
type SystemLookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

type Waiting = (error: Error | null, addresses: readonly LookupAddress[]) => void;

/**
 * Finds the addresses of upstreams. The system's resolver holds one of libuv's threads until it answers, which may
 * take half a minute; this keeps that from harming anybody else:
 *
 * - A name is asked for once at a time, whatever number of connections wait for it, so it holds one thread at most.
 * - Those who wait give up after `LIMITS.hostLookup`; the lookup goes on, and its answer serves later connections.
 * - While a name cannot be looked up, its last addresses are used (RFC 8767), and every use asks again. A resolver that
 *   says that the name does not exist is believed.
 *
 * Nothing is kept as long as lookups work: a new connection goes where the name leads at that moment.
 */
export class HostLookup {
  readonly #system: SystemLookup;
  readonly #hosts = new Map<string, Host>();

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

  /** How many host names are remembered. */
  get remembered(): number {
    return this.#hosts.size;
  }

  #hostOf(hostname: string, { hints = 0 }: LookupOptions): Host {
    let host = this.#hosts.get(hostname);
    if (host === undefined) {
      host = new Host((callback) => this.#system(hostname, { all: true, hints }, callback));
      const [oldest] = this.#hosts.keys();
      if (this.#hosts.size >= LIMITS.lookedUpHosts && oldest !== undefined) this.#hosts.delete(oldest);
      this.#hosts.set(hostname, host);
    }
    return host;
  }
}

type Ask = (callback: Parameters<SystemLookup>[2]) => void;

class Host {
  readonly #ask: Ask;
  /** The last good answer. */
  #known: readonly LookupAddress[] | undefined;
  /** The last lookup failed or takes too long. */
  #isFailing = false;
  #isAsking = false;
  #isOverdue = false;
  #waiting: Waiting[] = [];

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  addresses(callback: Waiting): void {
    const known = this.#known;
    if (this.#isFailing && known !== undefined) process.nextTick(callback, null, known);
    else if (this.#isOverdue) process.nextTick(callback, unresolved(), []);
    else this.#waiting.push(callback);
    if (!this.#isAsking) this.#lookUp();
  }

  #lookUp(): void {
    this.#isAsking = true;
    const patience = setTimeout(() => {
      this.#isFailing = true;
      if (this.#known !== undefined) this.#answer(null, this.#known);
    }, LIMITS.hostLookupPatience);
    const deadline = setTimeout(() => {
      this.#isOverdue = true;
      this.#answer(unresolved(), []);
    }, LIMITS.hostLookup);
    this.#ask((error, addresses) => {
      clearTimeout(patience);
      clearTimeout(deadline);
      this.#isAsking = false;
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

const unresolved = (): Error => failure(UNRESOLVED, 'the host name did not resolve in time');

/** One for the whole process, as the resolver's threads are. */
export const hostLookup = new HostLookup();
