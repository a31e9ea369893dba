import { isRecord, jsonIn, textIn } from '../../core/foreign.ts';
import {
  CelEvaluationError,
  CelSyntaxError,
  compileExpression,
} from '../../server/expressions/cel/expression.ts';
import { sampleLookup } from '../../server/expressions/sample-variables.ts';
import { expressionScopes } from '../../server/features.ts';
import { defineEndpoint, sendJson, shows } from '../endpoint.ts';

/** Every root variable that some place of a configuration has. */
const ALL_VARIABLES: readonly string[] = [...new Set(expressionScopes.flatMap(({ roots }) => roots))];

/**
 * Evaluates an expression with a sample: `{"expression": "…", "requestState": {…}}` returns `{"result", "error"}`, one
 * of them null. If the expression does not compile, the status is 400 and the place is given as offsets into it.
 * Nothing of this process is read.
 */
export const cel = defineEndpoint({
  path: '/api/cel',
  methods: { POST: shows('viewer') },
  handle(request, reply) {
    const asked = readBody(request.body);
    if (asked === undefined)
      return sendJson(reply.code(400), {
        result: null,
        error: { message: 'expected a JSON object with `expression`, and `requestState` as in a trace' },
      });
    try {
      const { evaluate } = compileExpression(asked.expression, ALL_VARIABLES);
      const result = evaluate(sampleLookup(asked.state));
      return sendJson(reply, {
        result: result instanceof Uint8Array ? Buffer.from(result).toString('base64') : result,
        error: null,
      });
    } catch (error) {
      if (error instanceof CelEvaluationError)
        return sendJson(reply, { result: null, error: { reason: error.reason, message: error.message } });
      if (!(error instanceof CelSyntaxError)) throw error;
      const { code, message, label, help, start, end } = error;
      return sendJson(reply.code(400), { result: null, error: { code, message, label, help, start, end } });
    }
  },
});

interface Asked {
  readonly expression: string;
  readonly state: Readonly<Record<string, unknown>>;
}

function readBody(body: unknown): Asked | undefined {
  const value = jsonIn(textIn(body));
  if (!isRecord(value)) return undefined;
  const { expression, requestState = {} } = value;
  return typeof expression === 'string' && isRecord(requestState)
    ? { expression, state: requestState }
    : undefined;
}
