import type { Expression } from '../expressions/cel/expression.ts';

/** Contents of requests and answers that are kept until the log is written: only those that an expression of it reads. */
export interface Payloads {
  readonly requestBody: boolean;
  readonly responseBody: boolean;
  /** Arguments of the tool that is called. */
  readonly toolArguments: boolean;
  /** What the tool gave, result or error. */
  readonly toolResult: boolean;
  readonly prompt: boolean;
  /** What the model said, its calls of tools included. */
  readonly completion: boolean;
}

/** What expressions of the log, the metrics and the spans read. */
export function payloadsOf(expressions: readonly Pick<Expression, 'reads'>[]): Payloads {
  const reads = (...paths: string[]): boolean =>
    expressions.some((expression) => paths.some((path) => expression.reads(path)));
  return {
    requestBody: reads('request.body', 'request.bodyPrefix'),
    responseBody: reads('response.body', 'response.bodyPrefix'),
    toolArguments: reads('mcp.tool.arguments'),
    toolResult: reads('mcp.tool.result', 'mcp.tool.error'),
    prompt: reads('llm.prompt'),
    completion: reads('llm.completion', 'llm.toolCalls'),
  };
}
