/**
 * How a request ended, for everything that shows or counts requests: traces, `--fail-on`, the pages of the admin
 * server. A status alone does not say it: an MCP server answers 200 and says in the body that the call failed.
 */

export type Outcome = 'good' | 'warn' | 'bad';

/** What an MCP answer says of itself. */
export interface McpAnswer {
  /** Of a JSON-RPC error. */
  readonly errorCode?: number | undefined;
  readonly errorMessage?: string | undefined;
  /** The result of a tool has `isError: true` (MCP, "Tools", error handling). */
  readonly isToolError?: boolean | undefined;
}

/** `error.type` of a tool that says that it failed (OpenTelemetry's conventions for MCP). */
export const TOOL_ERROR = 'tool_error';

/** What is wrong with an MCP answer, in words; undefined for a good one. */
export function mcpProblem(answer: McpAnswer | undefined): string | undefined {
  if (answer === undefined) return undefined;
  const { errorCode, errorMessage = '', isToolError } = answer;
  if (errorCode !== undefined)
    return `MCP error ${errorCode}${errorMessage === '' ? '' : `: ${errorMessage}`}`;
  return isToolError === true ? 'the tool says that it failed (isError)' : undefined;
}

/**
 * What came of a request. `problem`: what went wrong although there was an answer. A refusal (4xx) is a warning: the
 * gateway did its work.
 */
export function outcomeOf(status: number | undefined, problem: string | undefined): Outcome {
  if (status === undefined || status === 0 || status >= 500) return 'bad';
  if (status >= 400) return 'warn';
  return problem === undefined ? 'good' : 'bad';
}

/** The same from the fields of an access-log line, with the problem that its status does not show. */
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
  return { outcome: outcomeOf(status, problem), problem };
}

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
