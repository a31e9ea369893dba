import type { Reason } from './errors.ts';

/**
 * How a request ended, for everything that displays or counts requests: traces, `--fail-on`, the pages of the admin
 * server. The status alone is not enough: an MCP server answers 200 and reports in the body that the call failed.
 */

export type Outcome = 'good' | 'warn' | 'bad';

/** The outcome that an MCP response reports. */
export interface McpAnswer {
  /** The code of a JSON-RPC error. */
  readonly errorCode?: number | undefined;
  readonly errorMessage?: string | undefined;
  /** The result of a tool has `isError: true` (MCP, "Tools", error handling). */
  readonly isToolError?: boolean | undefined;
}

/** Value of `error.type` for a tool that reports failure (OpenTelemetry semantic conventions for MCP). */
export const TOOL_ERROR = 'tool_error';

/** Describes the failure that an MCP response reports; undefined for a success. */
export function mcpProblem(answer: McpAnswer | undefined): string | undefined {
  if (answer === undefined) return undefined;
  const { errorCode, errorMessage = '', isToolError } = answer;
  if (errorCode !== undefined)
    return `MCP error ${errorCode}${errorMessage === '' ? '' : `: ${errorMessage}`}`;
  return isToolError === true ? 'the tool reported an error (isError)' : undefined;
}

/** The `reason` of an MCP call that a rule does not allow. Its status is 200, since the refusal is in the body. */
export const DENIED: Reason = 'Authorization';

/**
 * Classifies a request. `problem` is a failure despite a successful status. A refusal (4xx, or an MCP call that rules do not
 * allow) is a warning, because the gateway worked as configured.
 */
export function outcomeOf(
  status: number | undefined,
  problem: string | undefined,
  reason: string | undefined,
): Outcome {
  if (status === undefined || status === 0 || status >= 500) return 'bad';
  if (status >= 400) return 'warn';
  if (problem === undefined) return 'good';
  return reason === DENIED ? 'warn' : 'bad';
}

/** What `reason` is of requests that an MCP server or a provider has answered, or failed to. */
const OF_SERVICE: ReadonlySet<string> = new Set<Reason>([
  'Upstream',
  'UpstreamFailure',
  'Timeout',
  'MCP',
  'DirectResponse',
  'ClientClosed',
]);

/** Whether the outcome says something of the service that was called; otherwise, a part of the gateway has refused or failed the request. */
export const isOfService = (reason: string | undefined): boolean =>
  reason === undefined || reason === '' || OF_SERVICE.has(reason);

/** The status of a client that left before its response: nobody refused it. */
const CLIENT_LEFT = 499;

/** Whether the caller did not get what it asked for, although nothing failed: no key, no rule, no route, over a limit. */
export const isRefusal = (outcome: Outcome, status: number | undefined): boolean =>
  outcome === 'warn' && status !== CLIENT_LEFT;

/** The fields that `outcomeOfFields` reads. */
export const OUTCOME_FIELDS = [
  'http.status',
  'mcp.error.code',
  'mcp.error.message',
  'error.type',
  'error',
  'reason',
] as const;

/** Classifies a request by the fields of its access-log line, with the problem that the status does not show. */
export function outcomeOfFields(fields: Readonly<Record<string, unknown>>): {
  readonly outcome: Outcome;
  readonly problem: string | undefined;
} {
  const status = numberOf(fields['http.status']);
  const problem =
    mcpProblem({
      errorCode: numberOf(fields['mcp.error.code']),
      errorMessage: textOf(fields['mcp.error.message']),
      isToolError: fields['error.type'] === TOOL_ERROR,
    }) ?? textOf(fields['error']);
  return { outcome: outcomeOf(status, problem, textOf(fields['reason'])), problem };
}

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
