/**
 * The events that `/debug/trace` sends, one JSON object each. Written by the gateway; read by `agctl proxy trace`, by
 * the web pages and by upstream's command of the same name. Upstream's command decodes into fixed types: a field that
 * is defined here must never change its type, or its whole stream fails. Numbers are whole microseconds.
 *
 * Fields marked (ours) do not exist upstream. Upstream's reader ignores them, and our readers must work without them.
 */

export type TraceSeverity = 'success' | 'info' | 'warn' | 'error';

/** The envelope of every message. */
export interface TraceEvent {
  /** µs since the trace began; null for events without a duration. */
  readonly eventStart: number | null;
  /** µs since the trace began. */
  readonly eventEnd: number;
  readonly severity: TraceSeverity;
  /**
   * Scopes of a call made for the request, outermost first: `mcp`, `ext_authz`, `guardrail`. Absent for the request
   * itself.
   */
  readonly scope?: readonly string[];
  /** (ours) Identifies the request in a stream of several requests. */
  readonly requestId?: string;
  readonly message: TraceMessage;
}

/** (ours) The place in the configuration that decided, if the file is known. Lines and columns count from 1. */
export interface TracePlace {
  /** For example `gateways.default.routes[0].policies.cors`. */
  readonly configPath?: string;
  readonly configFile?: string;
  readonly configLine?: number;
  readonly configColumn?: number;
}

/** CEL variables by root (`request`, `source`, `jwt`, …), without null values; credentials are `<redacted>`. */
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

/** The variables available to expressions at a stage of the request or response. */
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
  /** (ours) The body is longer than the part shown. */
  readonly truncated?: true;
}

/** The evaluation of one expression. */
export interface CelMessage extends TracePlace {
  readonly type: 'cel';
  readonly expr: string;
  /** The variables that the expression reads. */
  readonly requestState: RequestState;
  /** Any JSON value, or `{ error }`. */
  readonly result: unknown;
  /** (ours) Results of its subexpressions, in source order. */
  readonly parts?: readonly CelPart[];
}

/** (ours) A subexpression, `expr.slice(start, end)`, and its result. */
export interface CelPart {
  readonly start: number;
  readonly end: number;
  /** Any JSON value, or `{ error }`. */
  readonly value: unknown;
}

export interface RouteSelectionMessage extends TracePlace {
  readonly type: 'routeSelection';
  /** Key of the route, or null if no route matches. */
  readonly selectedRoute: string | null;
  /** Keys of all routes of the listener, sorted. */
  readonly evaluatedRoutes: readonly string[];
  /** (ours) Why the other routes did not match. */
  readonly skippedRoutes?: readonly ({ readonly route: string; readonly reason: string } & TracePlace)[];
}

export type PolicyPhase = 'listenerFrontend' | 'gateway' | 'route' | 'backend';

/**
 * The policies in effect from here on: their configuration by name, with secrets redacted; absent policies are left
 * out.
 */
export interface PolicySelectionMessage {
  readonly type: 'policySelection';
  readonly phase: PolicyPhase;
  readonly effectivePolicy: Readonly<Record<string, unknown>>;
  /** (ours) Where each of them is configured. */
  readonly places?: Readonly<Record<string, TracePlace>>;
}

export type PolicyResult =
  | { readonly type: 'skip'; readonly reason: string }
  | {
      readonly type: 'apply';
      readonly details: string;
      readonly snapshot: Readonly<Record<string, unknown>> | null;
    };

/**
 * (ours) The effect of a policy: it changed the request, had nothing to do, refused the request, ended it while it was
 * in progress, or answered it.
 */
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
  /** The source of the expression. */
  readonly name: string;
  /** Whether it is true. Rules after the deciding one are evaluated for the trace only. */
  readonly matched: boolean;
  readonly mode: 'allow' | 'deny' | 'require';
  /** (ours) Why the result is not a boolean. */
  readonly problem?: string;
  /** (ours) This rule decided. */
  readonly decided?: true;
}

export interface AuthorizationResultMessage extends TracePlace {
  readonly type: 'authorizationResult';
  readonly rules: readonly AuthorizationRule[];
  readonly result: 'allow' | 'deny';
  /** (ours) */
  readonly policy?: string;
  readonly reason?: string;
  /** (ours) The item that a rule was evaluated for, if rules apply to single items of MCP servers. */
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

export type LlmRouteType =
  | 'Completions'
  | 'Messages'
  | 'Responses'
  | 'AnthropicTokenCount'
  | 'GenerateContent'
  | 'Converse'
  | 'Embeddings'
  | 'Rerank'
  | 'Realtime'
  | 'Detect';

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
  /** (ours) The reason for a refusal that the client does not get. */
  readonly detail?: string;
}

/** A message about the trace itself, such as events lost to a slow reader. */
export interface NoteMessage {
  readonly type: 'message';
  readonly message: string;
  /** (ours) Number of events lost at this point. */
  readonly dropped?: number;
}

/** The default severity of a message, if its stage sets no other. */
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

/** Whether a CEL result represents a failure: `{ error: text }`. */
function isFailure(result: unknown): boolean {
  return typeof result === 'object' && result !== null && Object.hasOwn(result, 'error');
}
