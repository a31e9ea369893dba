import { parseJson } from '../../../core/foreign.ts';
import { ApiError } from '../../shared/api.ts';

/** The result of an expression, or why there is none. */
export type Outcome =
  | { readonly kind: 'result'; readonly value: unknown }
  | {
      readonly kind: 'error';
      readonly message: string;
      readonly code?: string;
      readonly label?: string;
      readonly help?: string;
      /** Offsets into the expression. */
      readonly start?: number;
      readonly end?: number;
    };

interface Answer {
  readonly result: unknown;
  readonly error: Omit<Extract<Outcome, { kind: 'error' }>, 'kind'> | null;
}

/** Evaluates the expression in the gateway. Throws `ApiError` if that is not possible. */
export async function evaluate(
  expression: string,
  requestState: unknown,
  signal: AbortSignal,
): Promise<Outcome> {
  const response = await fetch('/api/cel', {
    method: 'POST',
    body: JSON.stringify({ expression, requestState }),
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new ApiError(`${location.origin} does not answer. Is it still running?`);
  });
  const text = await response.text();
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- pages and server are of one package
    const { result, error } = parseJson(text) as Answer;
    return error === null ? { kind: 'result', value: result } : { kind: 'error', ...error };
  } catch {
    throw new ApiError(text.trim() || `the admin server answered ${response.status}`, response.status);
  }
}

/** The expression as a YAML value: a double-quoted scalar accepts the escapes of JSON. */
export function yamlQuoted(expression: string): string {
  const hasControls = /\p{Cc}/u.test(expression);
  return hasControls ? JSON.stringify(expression) : `'${expression.replaceAll("'", "''")}'`;
}
