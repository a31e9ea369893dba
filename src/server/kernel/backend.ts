import type { z } from 'zod';
import type { Path } from '../../core/diagnostic.ts';
import type { BackendView } from '../../core/overview.ts';
import type { CompileContext } from './compile-context.ts';
import type { DumpBackend, DumpEndpointInfo, DumpModel } from './config-dump.ts';
import type { BackendState } from './inspection.ts';
import type { Probe } from './probe.ts';
import type { ProtocolFields } from './request/field-rules.ts';
import type { Backend, ClientApi, Reply } from './request/request-context.ts';
import { Slot } from './slot.ts';
import type { Upstreams } from './upstreams.ts';

/** Timeouts of backend calls in ms, set by the policy `timeout`. If unset, the backend applies its own defaults. */
export const backendTimeouts = new Slot<{
  /** Maximum time until the response headers of one call arrive. */
  readonly request?: number | undefined;
  /** Maximum time between two chunks of the response body; 0 means no limit. */
  readonly idle?: number | undefined;
}>();

/**
 * Calls the backend of a request, possibly several times, and returns the reply for the client. Set by the policy `retry`.
 * Each `call` picks a backend, if possible one that has not been called yet.
 */
export const backendCaller = new Slot<(call: () => Promise<Reply>) => Promise<Reply>>();

/**
 * What policies wait for once the backend has answered, before the response phase: for the whole body, for example. A wait
 * that rejects answers the request with its error.
 */
export const responseWaits = new Slot<((reply: Reply) => Promise<void>)[]>();

/** What clients of a backend speak: MCP, one of the wire formats of LLMs, or plain HTTP. */
export type BackendApi = BackendView['api'];

/** The place of a backend in a configuration dump, and what its entry needs besides the settings. */
export interface DumpPlace {
  /** Name of the backend in dumps. */
  readonly name: string;
  /** Whether it was written as a top-level section, such as `llm:`. Dumps then show each of its models as a backend. */
  readonly isSection: boolean;
  /** Time in ms after which idle MCP sessions end. */
  readonly sessionIdle: number;
  /** State of one of its LLM endpoints, by index; undefined if unknown. */
  endpoint(index: number): DumpEndpointInfo | undefined;
  /** One `{key: settings}` per policy, in upstream's names and shapes. */
  policies(settings: object): Readonly<Record<string, unknown>>[];
}

/**
 * A kind of backend: its key in `backends[]`, its schema, how to open it, and all that other parts of the gateway know of it.
 * `config` is always what its schema has checked.
 */
export interface BackendKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  readonly api: BackendApi;
  /** How errors and credentials look to clients of its routes, if not as in plain HTTP. */
  readonly clientApi?: ClientApi;
  /** Header fields of its protocol. They count for every request, because the backend is known only when it has been routed. */
  readonly protocolFields?: ProtocolFields;
  /** Whether limits and budgets of tokens apply to its calls. */
  readonly countsTokens: boolean;
  /** Its requests are those of operators, who look at the gateway: figures and records of traffic leave them out. */
  readonly isForOperators?: true;
  connectsTo(config: z.output<Schema>): Upstreams;
  /** Its settings with `backendTLS` of the backend or its route, if its servers have settings of TLS of their own. */
  withTls?(config: z.output<Schema>, backendTLS: unknown): z.output<Schema>;
  /** One line for people: its kind, and what it leads to. */
  describe(config: z.output<Schema>): string;
  /** Checks and limits of its own that apply to its calls: they are shown beside its `policies`. */
  ownPolicies?(config: z.output<Schema>): readonly OwnPolicy[];
  /** Names of the parts of it that have paths of their own, below that of its route. */
  partNames?(config: z.output<Schema>): readonly string[];
  /** Its part of the overview of the admin server. `state`: of this backend in all workers. */
  view(config: z.output<Schema>, state: BackendState): Omit<BackendView, 'kind' | 'api' | 'weight'>;
  /** Its entries in configuration dumps. */
  dump(config: z.output<Schema>, place: DumpPlace): Iterable<DumpBackend>;
  /** Entries in the dump's list of models, for a backend that was written as a top-level section. */
  dumpModels?(config: z.output<Schema>, listenerKey: string): Iterable<DumpModel>;
  /** What `agctl check` tries. */
  probes(config: z.output<Schema>): readonly Probe[];
  /** Names and patterns of the models that clients may request. */
  modelNames?(config: z.output<Schema>): readonly string[];
  /** The models whose names at their providers the configuration says: `provider` is its name in price catalogs. */
  providerModels?(config: z.output<Schema>): readonly ProviderModel[];
  /** What every client that is not restricted by a policy could do at the operator's expense: a verb phrase, or undefined. */
  exposes?(config: z.output<Schema>): string | undefined;
  /** `name` is the backend's name in configuration dumps. Unlike its path, a reload does not change it. */
  open(config: z.output<Schema>, context: CompileContext, name: string): Backend;
}

/** What a backend does itself to its calls, as a policy of this name would do. */
export interface OwnPolicy {
  /** As in the configuration, such as `guardrails`. */
  readonly key: string;
  /** If it is not for all calls: the model that it is for, as it is configured. */
  readonly model?: string;
  /** Below the settings of the backend. */
  readonly path: Path;
  readonly schema: z.ZodType;
  readonly config: unknown;
  /** In configuration dumps, in upstream's names and shapes. */
  readonly dump: Readonly<Record<string, unknown>>;
}

export interface ProviderModel {
  /** For clients; may be a pattern. */
  readonly name: string;
  readonly provider: string;
  readonly model: string;
}

export function defineBackend<Key extends string, Schema extends z.ZodType>(
  kind: BackendKind<Key, Schema>,
): BackendKind<Key, Schema> {
  return kind;
}
