import type { Path } from '../../core/diagnostic.ts';
import { LIMITS } from '../../core/limits.ts';
import type { DumpEndpointInfo } from './config-dump.ts';

/** The usage of a limited buffer, cache or counter, for the admin server. */
export interface Bound {
  /** What is limited, such as `mcp.sessions`. */
  readonly name: string;
  /** Its path in the configuration, if there are several. */
  readonly at?: string;
  readonly max: number;
  /** A history or a cache that drops its oldest entry for the next one: it is normal that it is full. */
  readonly keepsLatest?: true;
  used(): number;
}

/** A service of the gateway itself that does not answer: its database or its shared store. */
export interface Outage {
  /** Where it is configured. */
  readonly at: 'config.database' | 'config.shared';
  /** The reason of the last failure. */
  readonly problem: string;
  /** In ms since 1970. */
  readonly since: number;
}

/** A certificate that is in use, for metrics. */
export interface CertificateState {
  /** As in the configuration. */
  readonly file: string;
  /** In ms since 1970. */
  readonly expires: number;
  /** False if the file has changed since it was read, and cannot be used as it is now. */
  readonly isCurrent: boolean;
}

export interface TargetState {
  readonly name: string;
  /** `idle`: not used yet. `failing`: not available to any session. */
  readonly state: 'idle' | 'connecting' | 'ready' | 'failing';
  /** Number of sessions that have a connection to it. */
  readonly connections: number;
  /** Why it is not available. */
  readonly problem?: string;
  /** The website that it reports in its server information; http or https. */
  readonly website?: string;
  /** Number of tools in its latest list, if a client asked for one together with those of other targets. */
  readonly tools?: number;
  /** Names of tools in its latest list, in any session: the first `LIMITS.shownTools`. */
  readonly toolNames?: readonly string[] | undefined;
  /** Its pinned tools, with `toolPinning`. */
  readonly pins?: PinsState;
}

export interface PinsState {
  /** Whether changed tools are hidden and calls to them refused. */
  readonly isEnforced: boolean;
  readonly pinned: number;
  /** Names at the target of tools that have changed since they were pinned; at most `LIMITS.shownToolChanges`. */
  readonly changed: readonly string[];
}

/** State of a backend. */
export interface BackendState {
  readonly sessions?: number;
  readonly targets?: readonly TargetState[];
  /** Endpoints of an LLM backend, in the order of its models. */
  readonly endpoints?: readonly DumpEndpointInfo[];
}

/**
 * State of the components of a runtime. Components register functions while the configuration is compiled; these are
 * called only when the state is shown, so requests have no extra cost.
 */
export class Inspection {
  readonly bounds: Bound[] = [];
  /** Each reads the state of one certificate. */
  readonly certificates: (() => CertificateState)[] = [];
  /** By the backend's path in the configuration, joined with dots. A backend on several gateways has several entries. */
  readonly #backends = new Map<string, (() => BackendState)[]>();

  addBackend(path: Path, state: () => BackendState): void {
    const key = path.join('.');
    this.#backends.set(key, [...(this.#backends.get(key) ?? []), state]);
  }

  /** Adds the state of a component that was compiled at path `compiledAt` and is now at path `current`. */
  add(component: Inspection, compiledAt: Path, current: Path): void {
    const from = compiledAt.join('.');
    const to = current.join('.');
    const moved = (path: string): string =>
      path === from || path.startsWith(`${from}.`) ? to + path.slice(from.length) : path;
    for (const bound of component.bounds)
      this.bounds.push(bound.at === undefined ? bound : { ...bound, at: moved(bound.at) });
    this.certificates.push(...component.certificates);
    for (const [path, states] of component.#backends) {
      const key = moved(path);
      this.#backends.set(key, [...(this.#backends.get(key) ?? []), ...states]);
    }
  }

  /** Paths of all backends that have registered state, joined with dots. */
  get backendPaths(): readonly string[] {
    return [...this.#backends.keys()];
  }

  /** The state of the backend at a path; empty if it has not registered any. */
  backend(path: string): BackendState {
    return (this.#backends.get(path) ?? []).map((state) => state()).reduce(mergeStates, {});
  }
}

/** The state of a backend that is compiled, or runs, more than once. */
export function mergeStates(a: BackendState, b: BackendState): BackendState {
  const sessions = sum(a.sessions, b.sessions);
  const targets = [a.targets, b.targets].filter((each) => each !== undefined);
  const endpoints = [a.endpoints, b.endpoints].filter((each) => each !== undefined);
  return {
    ...(sessions === undefined ? {} : { sessions }),
    ...(targets.length === 0 ? {} : { targets: targets.reduce(mergeTargets) }),
    ...(endpoints.length === 0 ? {} : { endpoints: endpoints.reduce(mergeEndpoints) }),
  };
}

const sum = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : a + (b ?? 0);

/** From best to worst: a target is shown as ready if any session can use it. */
const STATES = ['ready', 'connecting', 'failing', 'idle'] as const;

function mergeTargets(a: readonly TargetState[], b: readonly TargetState[]): readonly TargetState[] {
  return a.map((target, index) => {
    const other = b[index] ?? target;
    const better = STATES.indexOf(other.state) < STATES.indexOf(target.state) ? other : target;
    const tools = better.tools ?? target.tools ?? other.tools;
    const toolNames = better.toolNames ?? target.toolNames ?? other.toolNames;
    const connections = target.connections + other.connections;
    const pins = mergePins(target.pins, other.pins);
    return {
      ...better,
      connections,
      ...(tools !== undefined && { tools }),
      ...(toolNames !== undefined && { toolNames }),
      ...(pins !== undefined && { pins }),
    };
  });
}

/** Processes share the file of pins, but each knows only the changes that it has seen. */
function mergePins(a: PinsState | undefined, b: PinsState | undefined): PinsState | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const changed = [...new Set([...a.changed, ...b.changed])].slice(0, LIMITS.shownToolChanges);
  return { ...a, pinned: Math.max(a.pinned, b.pinned), changed };
}

function mergeEndpoints(
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
