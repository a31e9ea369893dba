/**
 * What `/debug/trace` sends, one object an event. Written by the gateway, read by `agctl proxy trace`, by the web
 * pages and by upstream's command of the same name. That one decodes into fixed types: a field of a name that stands
 * here must never get another type, or its whole stream ends. Numbers are whole microseconds.
 *
 * Fields marked (ours) are not upstream's; its reader ignores them, and ours must do without them.
 */

export type TraceSeverity = 'success' | 'info' | 'warn' | 'error';

/** Around every message. */
export interface TraceEvent {
  /** µs since the trace began; only events that took time have one. */
  readonly eventStart: number | null;
  /** µs since the trace began. */
  readonly eventEnd: number;
  readonly severity: TraceSeverity;
  /** Calls made for the request, outermost first: `mcp`, `ext_authz`, `guardrail`. Absent for the request itself. */
  readonly scope?: readonly string[];
  /** (ours) Which request, in a stream that follows several. */
  readonly requestId?: string;
  readonly message: TraceMessage;
}

/** (ours) The place in the configuration that decided, as far as the file is known. Lines and columns count from 1. */
export interface TracePlace {
  /** As in `gateways.default.routes[0].policies.cors`. */
  readonly configPath?: string;
  readonly configFile?: string;
  readonly configLine?: number;
  readonly configColumn?: number;
}

/** CEL variables by root (`request`, `source`, `jwt`, …), without those that are null; credentials are `<redacted>`. */
export type RequestState = Readonly<Record<string, unknown>>;

export type TraceMessage =
  | { readonly type: 'requestStarted' }
  | SnapshotMessage
  | BodySnapshotMessage
  | CelMessage
  | RouteSelectionMessage
  | PolicySelectionMessage
  | PolicyMessage
  | PolicyEventMessage
  | { readonly type: 'traceSampling'; readonly decision: SamplingDecision }
  | AuthorizationResultMessage
  | BackendCallStartMessage
  | BackendCallResultMessage
  | { readonly type: 'llmRouteResolved'; readonly provider: string; readonly routeType: LlmRouteType }
  | LlmRequestDetectedMessage
  | LlmStreamingTranslationMessage
  | RequestFinishedMessage
  | NoteMessage;

export type TraceMessageType = TraceMessage['type'];

/** What expressions could read at a stage of the request, or of its response. */
export interface SnapshotMessage {
  readonly type: 'requestSnapshot' | 'responseSnapshot';
  readonly stage: string;
  readonly requestState: RequestState;
}

export interface BodySnapshotMessage {
  readonly type: 'bodySnapshot';
  readonly stage: string;
  /** Standard base64 with padding. */
  readonly body: string;
  /** (ours) The body was longer than what is shown. */
  readonly truncated?: true;
}

/** One expression that was evaluated. */
export interface CelMessage extends TracePlace {
  readonly type: 'cel';
  readonly expr: string;
  /** The variables that it reads. */
  readonly requestState: RequestState;
  /** Any JSON value, or `{ error }`. */
  readonly result: unknown;
  /** (ours) What its parts gave, in the order of the text. */
  readonly parts?: readonly CelPart[];
}

/** (ours) A part of an expression, `expr.slice(start, end)`, and what it gave. */
export interface CelPart {
  readonly start: number;
  readonly end: number;
  /** Any JSON value, or `{ error }`. */
  readonly value: unknown;
}

export interface RouteSelectionMessage extends TracePlace {
  readonly type: 'routeSelection';
  /** Key of the route, or null when none matches. */
  readonly selectedRoute: string | null;
  /** Keys of all routes of the listener, sorted. */
  readonly evaluatedRoutes: readonly string[];
  /** (ours) Why the others were not taken. */
  readonly skippedRoutes?: readonly ({ readonly route: string; readonly reason: string } & TracePlace)[];
}

export type PolicyPhase = 'listenerFrontend' | 'gateway' | 'route' | 'backend';

/** The policies in force from here on: their configuration by name, secrets redacted, absent ones left out. */
export interface PolicySelectionMessage {
  readonly type: 'policySelection';
  readonly phase: PolicyPhase;
  readonly effectivePolicy: Readonly<Record<string, unknown>>;
  /** (ours) Where each of them stands. */
  readonly places?: Readonly<Record<string, TracePlace>>;
}

export type PolicyResult =
  | { readonly type: 'skip'; readonly reason: string }
  | {
      readonly type: 'apply';
      readonly details: string;
      readonly snapshot: Readonly<Record<string, unknown>> | null;
    };

/** (ours) What came of a policy: it acted, had nothing to do, refused the request, ended it while it was under way, or answered it. */
export type PolicyAction = 'apply' | 'skip' | 'deny' | 'end' | 'respond';

export interface PolicyMessage extends TracePlace {
  readonly type: 'policy';
  readonly kind: string;
  readonly result: PolicyResult;
  /** (ours) Name of the policy in the configuration. */
  readonly policy?: string;
  readonly action?: PolicyAction;
}

export interface PolicyEventMessage extends TracePlace {
  readonly type: 'policyEvent';
  readonly kind: string;
  readonly details: string | Readonly<Record<string, unknown>>;
}

export interface AuthorizationRule extends TracePlace {
  /** The expression. */
  readonly name: string;
  /** Whether it is true. Rules after the one that decided are evaluated too, for the trace only. */
  readonly matched: boolean;
  readonly mode: 'allow' | 'deny' | 'require';
  /** (ours) Why it gave no boolean. */
  readonly problem?: string;
  /** (ours) The rule that decided. */
  readonly decided?: true;
}

export interface AuthorizationResultMessage extends TracePlace {
  readonly type: 'authorizationResult';
  readonly rules: readonly AuthorizationRule[];
  readonly result: 'allow' | 'deny';
  /** (ours) */
  readonly policy?: string;
  readonly reason?: string;
  /** (ours) What it was about, for rules on single items of MCP servers. */
  readonly item?: { readonly kind: string; readonly target: string; readonly name: string };
}

export type SamplingDecision =
  | 'sample (client)'
  | 'sample (random)'
  | 'not sampled (random)'
  | 'not sampled (client)';

export interface BackendCallStartMessage {
  readonly type: 'backendCallStart';
  /** `host:port`, `unix:/path`, `stdio:<target>`, or the name of a built-in model. */
  readonly target: string;
  readonly backendName?: string;
  readonly protocol?: string;
}

export interface BackendCallResultMessage {
  readonly type: 'backendCallResult';
  readonly status: number | null;
  readonly error: string | null;
  readonly target?: string;
}

export type LlmRouteType = 'Completions' | 'Embeddings' | 'Responses' | 'Detect';

export interface LlmRequestDetectedMessage {
  readonly type: 'llmRequestDetected';
  readonly provider: string;
  readonly inputFormat: LlmRouteType;
  readonly upstreamRouteType: LlmRouteType | null;
  readonly requestModel: string;
  readonly streaming: boolean;
}

export interface LlmStreamingTranslationMessage {
  readonly type: 'llmStreamingTranslation';
  readonly provider: string;
  readonly inputFormat: LlmRouteType;
  readonly upstreamRouteType: LlmRouteType | null;
  readonly streamFormat: 'sseJson';
}

export interface RequestFinishedMessage {
  readonly type: 'requestFinished';
  readonly status: number | null;
  readonly error: string | null;
  /** (ours) Why the gateway refused, which the client was not told. */
  readonly detail?: string;
}

/** About the trace itself, such as events that a slow reader lost. */
export interface NoteMessage {
  readonly type: 'message';
  readonly message: string;
  /** (ours) How many events are missing here. */
  readonly dropped?: number;
}

/** The severity that goes with a message where its stage says nothing else. */
export function severityOf(message: TraceMessage): TraceSeverity {
  switch (message.type) {
    case 'cel':
      return isFailure(message.result) ? 'warn' : 'info';
    case 'routeSelection':
      return message.selectedRoute === null ? 'error' : 'info';
    case 'authorizationResult':
      return message.result === 'allow' ? 'success' : 'error';
    case 'backendCallResult':
    case 'requestFinished':
      return severityOfStatus(message.status, message.error);
    case 'message':
      return 'warn';
    default:
      return 'info';
  }
}

function severityOfStatus(status: number | null, error: string | null): TraceSeverity {
  if (error !== null || (status !== null && status >= 500)) return 'error';
  return status !== null && status >= 400 ? 'warn' : 'info';
}

/** A CEL result that stands for a failure: `{ error: text }`. */
function isFailure(result: unknown): boolean {
  return typeof result === 'object' && result !== null && Object.hasOwn(result, 'error');
}
