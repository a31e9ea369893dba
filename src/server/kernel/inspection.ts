import type { DumpEndpointInfo } from '../../core/config-dump.ts';
import type { Path } from '../../core/diagnostic.ts';

/** A buffer, cache or count with a cap, as the admin server shows it. */
export interface Bound {
  /** What is bounded, such as `mcp.sessions`. */
  readonly name: string;
  /** Which one, when there are several: its place in the configuration. */
  readonly at?: string;
  readonly max: number;
  used(): number;
}

export interface TargetState {
  readonly name: string;
  /** `idle`: nobody has used it yet. `failing`: it is not available to any session. */
  readonly state: 'idle' | 'connecting' | 'ready' | 'failing';
  /** Sessions that have a connection to it. */
  readonly connections: number;
  /** Why it is not available, where it is not. */
  readonly problem?: string;
  /** A page about it, as it says itself; http or https. */
  readonly website?: string;
}

/** What a backend tells of itself. */
export interface BackendState {
  readonly sessions?: number;
  readonly targets?: readonly TargetState[];
  /** Endpoints of an LLM backend, in the order of its models. */
  readonly endpoints?: readonly DumpEndpointInfo[];
}

/**
 * What the parts of a runtime tell of themselves. Filled while a configuration is compiled; asked only when
 * somebody looks, so that it costs requests nothing.
 */
export class Inspection {
  readonly bounds: Bound[] = [];
  /** By the backend's place in the configuration, joined by dots. One on several gateways is there several times. */
  readonly #backends = new Map<string, (() => BackendState)[]>();

  addBackend(path: Path, state: () => BackendState): void {
    const place = path.join('.');
    this.#backends.set(place, [...(this.#backends.get(place) ?? []), state]);
  }

  /** Takes in what a part tells that was compiled at one place of the configuration and now stands at another. */
  add(part: Inspection, compiledAt: Path, now: Path): void {
    const from = compiledAt.join('.');
    const to = now.join('.');
    const moved = (place: string): string =>
      place === from || place.startsWith(`${from}.`) ? to + place.slice(from.length) : place;
    for (const bound of part.bounds)
      this.bounds.push(bound.at === undefined ? bound : { ...bound, at: moved(bound.at) });
    for (const [place, states] of part.#backends) {
      const here = moved(place);
      this.#backends.set(here, [...(this.#backends.get(here) ?? []), ...states]);
    }
  }

  /** Places of all backends that tell something. */
  get places(): readonly string[] {
    return [...this.#backends.keys()];
  }

  /** The state of the backend at a place; empty when it tells nothing. */
  backend(place: string): BackendState {
    return (this.#backends.get(place) ?? []).map((state) => state()).reduce(together, {});
  }
}

function together(a: BackendState, b: BackendState): BackendState {
  const sessions = sum(a.sessions, b.sessions);
  const targets = [a.targets, b.targets].filter((each) => each !== undefined);
  const endpoints = [a.endpoints, b.endpoints].filter((each) => each !== undefined);
  return {
    ...(sessions === undefined ? {} : { sessions }),
    ...(targets.length === 0 ? {} : { targets: targets.reduce(joinTargets) }),
    ...(endpoints.length === 0 ? {} : { endpoints: endpoints.reduce(joinEndpoints) }),
  };
}

const sum = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : a + (b ?? 0);

/** From the best to the worst: a target that works for one session works. */
const STATES = ['ready', 'connecting', 'failing', 'idle'] as const;

function joinTargets(a: readonly TargetState[], b: readonly TargetState[]): readonly TargetState[] {
  return a.map((target, index) => {
    const other = b[index] ?? target;
    const better = STATES.indexOf(other.state) < STATES.indexOf(target.state) ? other : target;
    return { ...better, connections: target.connections + other.connections };
  });
}

function joinEndpoints(
  a: readonly DumpEndpointInfo[],
  b: readonly DumpEndpointInfo[],
): readonly DumpEndpointInfo[] {
  return a.map((info, index) => {
    const other = b[index] ?? info;
    const totalRequests = info.totalRequests + other.totalRequests;
    const busier = info.totalRequests >= other.totalRequests ? info : other;
    return { ...busier, totalRequests, pendingRequests: info.pendingRequests + other.pendingRequests };
  });
}
