import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import { bodyOf } from '../expressions/body-value.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { Expression, VariableResolver } from '../kernel/expression.ts';
import { definePolicy } from '../kernel/policy.ts';
import {
  HeaderList,
  isHeaderValue,
  isSettableHeader,
  SETTABLE_HEADER,
} from '../kernel/request/header-list.ts';

const schema = z.lazy(() =>
  z
    .strictObject({
      status: z.int().min(200).max(599).default(200).describe('Status of the response.'),
      body: z
        .union([z.string(), z.array(z.int().min(0).max(255))])
        .optional()
        .describe('Body of the response: text, or a list of bytes.'),
      bodyExpression: nonEmpty
        .optional()
        .describe(
          'CEL expression for the body, instead of `body`: text, bytes, or a value that becomes JSON.',
        ),
      headers: z
        .record(z.string().refine(isSettableHeader, { error: SETTABLE_HEADER }), nonEmpty)
        .default({})
        .describe('Response headers as CEL expressions. A header whose expression fails is omitted.'),
    })
    .superRefine((config, context) => {
      if (config.body === undefined || config.bodyExpression === undefined) return;
      context.addIssue({
        code: 'custom',
        message: '`body` and `bodyExpression` are mutually exclusive',
        params: { code: 'AGW0105', help: 'remove one of them' },
      });
    })
    .describe('Answers requests without a backend.'),
);

/** Answers requests with a configured response. */
export const directResponse = definePolicy({
  key: 'directResponse',
  conditional: true,
  requestExpressions: ['bodyExpression', 'headers'],
  schema,
  answersAll: true,
  trace: { kind: 'direct_response', stage: 'direct response' },
  compile({ status, body, bodyExpression, headers }, context) {
    const computed =
      bodyExpression === undefined
        ? undefined
        : context.at('bodyExpression').cel(bodyExpression, requestScope);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- text and bytes have an overload each.
    const literal = Buffer.from((body ?? '') as string);
    const fields = Object.entries(headers).map(
      ([name, source]) => [name, context.at('headers', name).cel(source, requestScope)] as const,
    );
    return {
      request(ctx) {
        const lookup = resolverFor(ctx);
        const list = new HeaderList();
        for (const [name, expression] of fields) {
          const value = textOf(expression, lookup);
          if (value !== undefined && isHeaderValue(value)) list.set(name, value);
        }
        const bytes = computed === undefined ? literal : bodyOf(computed, lookup);
        if (bytes === undefined)
          throw new AppError('internal', { detail: 'directResponse.bodyExpression could not be evaluated' });
        if (!list.has('content-type') && bytes.length > 0)
          list.set('content-type', isUtf8(bytes) ? 'text/plain; charset=utf-8' : 'application/octet-stream');
        ctx.observer?.policy({ kind: 'directResponse', action: 'respond', reason: `status ${status}` });
        return { status, headers: list, body: bytes };
      },
    };
  },
});

/** The value of an expression as text; undefined if the evaluation fails. */
function textOf(expression: Expression, lookup: VariableResolver): string | undefined {
  const value = tryEvaluate(expression, lookup);
  if (typeof value === 'string') return value;
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : JSON.stringify(value);
}
