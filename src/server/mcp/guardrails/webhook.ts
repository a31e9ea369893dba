import { z } from 'zod';
import { requestScope } from '../../expressions/scopes.ts';
import { compileWebhookService, webhookFields } from '../../guardrails/webhook.ts';
import { valueAt } from '../../kernel/json/json-text.ts';
import {
  defineProcessor,
  type GuardedMessage,
  isSameItem,
  type MessageVerdict,
  REJECTED,
} from './processor.ts';

/** Asks a web service about each message, with the envelope that LLM guardrail webhooks use. */
export const webhook = defineProcessor({
  kind: 'webhook',
  fields: {
    host: webhookFields.host,
    path: z
      .string()
      .startsWith('/', { error: 'expected a path that starts with `/`' })
      .optional()
      .describe('Path of the calls. Default: `/request` or `/response`, by phase.'),
    headers: webhookFields.headers,
    failureMode: webhookFields.failureMode.describe(
      'What happens if the webhook fails: `failClosed` rejects the message, `failOpen` lets it pass.',
    ),
  },
  compile({ path, ...config }, context) {
    const at = { host: context.at('host'), headers: context.at('headers') };
    const service = compileWebhookService(config, requestScope, 'mcp::guardrail', context, at);
    if (service === undefined) return undefined;
    return {
      place: service.place,
      async check(message, lookup, signal): Promise<MessageVerdict> {
        const { phase } = message;
        const question = { phase, path: path ?? `/${phase}`, body: bodyOf(message), mask: maskOf(message) };
        const verdict = await service.ask(question, lookup, signal);
        switch (verdict.kind) {
          case 'pass':
            return verdict;
          case 'reject':
            return { kind: 'reject', code: codeOf(verdict.status), reason: verdict.body };
          case 'mask':
            return { kind: 'mask', text: maskedText(message, verdict.text) };
        }
      },
      close: () => service.close(),
    };
  },
});

// The JSON texts are passed on as they are: `JSON.parse` would change numbers beyond 2^53.
function bodyOf({ method, targets, params, part, text }: GuardedMessage): string {
  const whose =
    targets.length === 1 ? `"target":${JSON.stringify(targets[0])}` : `"targets":${JSON.stringify(targets)}`;
  const names = `"method":${JSON.stringify(method)},${whose}`;
  return `{${names},"params":${params}${part === 'params' ? '' : `,"${part}":${text}`}}`;
}

const object = z.record(z.string(), z.unknown());
const error = z.strictObject({ code: z.int(), message: z.string(), data: z.unknown().optional() });

/** Parameters may not name another item: rules have decided on this one. */
function maskOf({ part, params }: GuardedMessage): z.ZodType<object> {
  if (part === 'result') return z.strictObject({ result: object });
  if (part === 'error') return z.strictObject({ error });
  const isSame = (after: object): boolean => isSameItem(params, JSON.stringify(after));
  return z.strictObject({ params: object.refine(isSame) });
}

/** The JSON text of the new part in the answer of a webhook. */
function maskedText({ part }: GuardedMessage, answer: string): string {
  const span = valueAt(answer, ['action', 'body', part]);
  return span === undefined ? '{}' : answer.slice(span.start, span.end);
}

/** JSON-RPC error code for the status of a rejection. */
function codeOf(status: number): number {
  if (status === 429) return REJECTED.exhausted;
  return status === 400 ? REJECTED.invalid : REJECTED.denied;
}
