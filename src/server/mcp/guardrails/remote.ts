import { z } from 'zod';
import { elementsOf, isRecord, jsonIn, membersOf, textIn } from '../../../core/foreign.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { requestScope } from '../../expressions/scopes.ts';
import { ACTIONS, GuardrailError, PHASES } from '../../guardrails/outcome.ts';
import { webhookFields } from '../../guardrails/webhook.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import { isHeaderName, isHeaderValue, isSettableHeader } from '../../kernel/request/header-list.ts';
import { createGrpcService } from '../../transport/services/grpc.ts';
import { fromStruct, toStruct } from '../../transport/services/protobuf-struct.ts';
import { extMcp } from './ext-mcp.ts';
import {
  defineProcessor,
  type Effects,
  type GuardedMessage,
  type HeaderMutation,
  isSameItem,
  type MessageVerdict,
  REJECTED,
} from './processor.ts';

const names = z.array(z.string().min(1)).default([]);

/** Calls a gRPC service that implements upstream's `ExtMcp`. */
export const remote = defineProcessor({
  kind: 'remote',
  fields: {
    host: webhookFields.host,
    failureMode: webhookFields.failureMode.describe(
      'What happens if the service fails: `failClosed` rejects the message, `failOpen` lets it pass.',
    ),
    metadata: z
      .record(z.string().min(1), z.string().min(1))
      .default({})
      .describe('CEL expressions whose values are sent with each message. One that fails is omitted.'),
    requestHeaders: z
      .strictObject({
        allowed: names.describe(
          'Headers to send, and `:method`, `:path`, `:authority`, `:scheme`. Empty: all.',
        ),
        disallowed: names.describe('Headers not to send, also if they are allowed.'),
      })
      .prefault({})
      .describe("Headers of the client's request that are sent in the request phase; all by default."),
  },
  compile({ host, failureMode, metadata, requestHeaders }, context) {
    const { guardrailTimeout, guardrailBody } = context.settings.limits;
    const meter = context.settings.callMeter('Policy', 'Guardrail');
    const at = context.at('host');
    const service = createGrpcService({ host, at, connection: {} }, extMcp, {
      maxBytes: guardrailBody,
      meter,
    });
    const expressions = Object.entries(metadata).map(
      ([name, source]) => [name, context.at('metadata', name).cel(source, requestScope)] as const,
    );
    if (service === undefined) return undefined;
    const place = context.place();
    const counted = context.settings.counter('guardrails');
    const isSent = headerFilter(requestHeaders);

    const metadataOf = (lookup: VariableResolver): object | undefined => {
      if (expressions.length === 0) return undefined;
      const values = expressions.flatMap(([name, expression]) => {
        const value = tryEvaluate(expression, lookup);
        return value === undefined ? [] : [[name, value] as const];
      });
      return toStruct(Object.fromEntries(values));
    };

    async function ask(
      message: GuardedMessage,
      lookup: VariableResolver,
      signal: AbortSignal,
    ): Promise<MessageVerdict> {
      const { method, targets, params, part, text, headers } = message;
      const question = { service_names: targets, method, metadata_context: metadataOf(lookup) };
      const options = { timeout: guardrailTimeout, signal, span: lookup.span };
      const answer =
        part === 'params'
          ? await service?.call(
              'CheckRequest',
              {
                ...question,
                mcp_request: Buffer.from(params),
                headers: headers()
                  .filter(([key]) => isSent(key))
                  .map(([key, value]) => ({ key, value: Buffer.from(value, 'latin1') })),
              },
              options,
            )
          : await service?.call('CheckResponse', { ...question, mcp_response: Buffer.from(text) }, options);
      return verdictOf(message, answerOf(answer));
    }

    return {
      place,
      async check(message, lookup, signal): Promise<MessageVerdict> {
        // The protocol has no place for errors.
        if (message.part === 'error') return { kind: 'pass' };
        const count = (action: string): void => counted([PHASES[message.phase], action]);
        try {
          const verdict = await ask(message, lookup, signal);
          count(ACTIONS[verdict.kind]);
          return verdict;
        } catch (error) {
          if (signal.aborted) throw error;
          const problem = `${service.address}: ${error instanceof Error ? error.message : 'failed'}`;
          count(failureMode === 'failOpen' ? 'FailOpen' : 'Reject');
          if (failureMode === 'failClosed') throw new GuardrailError(problem);
          context.log.warn('mcp::guardrail', 'a remote processor failed; the call continues (failOpen)', {
            phase: message.phase,
            problem,
          });
          return { kind: 'pass' };
        }
      },
      close: () => service.close(),
    };
  },
});

/** `McpRequestResult` and `McpResponseResult`. */
interface Answer {
  readonly result?: 'pass' | 'mutated' | 'error';
  readonly mutated?: Buffer;
  readonly header_mutation?: {
    readonly set: readonly { readonly key: string; readonly value: Buffer }[];
    readonly remove: readonly string[];
  } | null;
  readonly metadata?: unknown;
  readonly error?: { readonly code: number; readonly reason: string; readonly mcp_error?: Buffer };
}

/** Reads an answer. Members of another type count as absent, as the decoder treats fields that it does not know. */
function answerOf(value: unknown): Answer {
  const { result, mutated, header_mutation, metadata, error } = membersOf(value);
  const { set, remove } = membersOf(header_mutation);
  const { code, reason, mcp_error } = membersOf(error);
  const pairs = elementsOf(set).flatMap((header) => {
    const { key, value: own } = membersOf(header);
    return typeof key === 'string' && own instanceof Buffer ? [{ key, value: own }] : [];
  });
  return {
    ...((result === 'pass' || result === 'mutated' || result === 'error') && { result }),
    ...(mutated instanceof Buffer && { mutated }),
    header_mutation: isRecord(header_mutation)
      ? { set: pairs, remove: elementsOf(remove).filter((name) => typeof name === 'string') }
      : null,
    metadata,
    error: {
      code: typeof code === 'number' ? code : 0,
      reason: textIn(reason),
      ...(mcp_error instanceof Buffer && { mcp_error }),
    },
  };
}

/** JSON-RPC codes of `AuthorizationError.Code` (upstream). */
const CODES = [-32603, REJECTED.denied, REJECTED.exhausted, REJECTED.invalid] as const;

function verdictOf(message: GuardedMessage, answer: Answer): MessageVerdict {
  const { result, mutated, error } = answer;
  switch (result) {
    case 'pass':
      return { kind: 'pass', effects: effectsOf(answer) };
    case 'mutated': {
      const text = (mutated ?? Buffer.alloc(0)).toString('utf8');
      if (!isRecord(jsonIn(text))) throw new GuardrailError('the new message is not a JSON object');
      if (message.phase === 'request' && !isSameItem(message.params, text))
        throw new GuardrailError('the new parameters name another item');
      return { kind: 'mask', text, effects: effectsOf(answer) };
    }
    case 'error':
      return {
        kind: 'reject',
        code: CODES[error?.code ?? 0] ?? CODES[0],
        reason: error?.reason ?? '',
        data: parsed(error?.mcp_error),
      };
    default:
      throw new GuardrailError('the answer has no result');
  }
}

/** Responses have neither member. */
function effectsOf({ header_mutation, metadata }: Answer): Effects {
  return {
    headers: header_mutation ? mutationOf(header_mutation) : undefined,
    values: metadata ? fromStruct(metadata) : undefined,
  };
}

/** Headers that the gateway itself sets in requests to targets; they describe its own message. */
const OWN_HEADER =
  /^(?:mcp-(?:session-id|protocol-version|method|name)|content-(?:type|encoding)|accept|accept-encoding|last-event-id)$/i;

function mutationOf({ set, remove }: NonNullable<Answer['header_mutation']>): HeaderMutation {
  const pairs = set.map(({ key, value }) => [key, value.toString('latin1')] as const);
  for (const [name, value] of pairs) {
    if (!isSettableHeader(name) || OWN_HEADER.test(name))
      throw new GuardrailError(
        `header_mutation sets ${JSON.stringify(name.slice(0, 100))}, which it cannot set`,
      );
    if (!isHeaderValue(value)) throw new GuardrailError(`header_mutation has no valid value for "${name}"`);
  }
  const invalid = remove.find((name) => !isHeaderName(name));
  if (invalid !== undefined)
    throw new GuardrailError(
      `header_mutation removes ${JSON.stringify(invalid.slice(0, 100))}, which is not a valid header name`,
    );
  return { set: pairs, remove };
}

/** The value of a JSON text; undefined if it is none. */
function parsed(bytes: Buffer | undefined): unknown {
  return bytes && jsonIn(bytes.toString('utf8'));
}

function headerFilter({
  allowed,
  disallowed,
}: {
  readonly allowed: readonly string[];
  readonly disallowed: readonly string[];
}): (name: string) => boolean {
  const lower = (list: readonly string[]): Set<string> => new Set(list.map((name) => name.toLowerCase()));
  const [wanted, unwanted] = [lower(allowed), lower(disallowed)];
  return (name) => !unwanted.has(name) && (wanted.size === 0 || wanted.has(name));
}
