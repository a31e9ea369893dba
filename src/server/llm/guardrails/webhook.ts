import { z } from 'zod';
import type { TracePlace } from '../../../core/trace/event.ts';
import { compileWebhookService, type Phase, webhookFields } from '../../guardrails/webhook.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import { llmRequestScope, llmResponseScope } from '../variables.ts';

const { host, headers, failureMode } = webhookFields;

export const webhookSchema = z
  .strictObject({
    target: z.strictObject({ host }).describe('The webhook server.'),
    headers,
    failureMode: failureMode.describe(
      'What happens if the webhook fails: `failClosed` rejects the request with 503, `failOpen` continues.',
    ),
  })
  .describe('A server that checks texts.');

/** The decision of a webhook; a mask has the new messages or choices. */
type Verdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'mask'; readonly items: readonly unknown[] }
  | { readonly kind: 'reject'; readonly status: number; readonly body: string };

export interface Webhook {
  readonly place: TracePlace;
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  /**
   * Checks messages (request phase) or choices (response phase). Takes at most `LIMITS.guardrailTimeout` ms. Throws
   * `GuardrailError` if the webhook fails and `failureMode` is `failClosed`.
   */
  check(items: readonly unknown[], lookup: VariableResolver, signal: AbortSignal): Promise<Verdict>;
  close(): Promise<void>;
}

export function compileWebhook(
  { target, ...settings }: z.output<typeof webhookSchema>,
  phase: Phase,
  context: CompileContext,
): Webhook | undefined {
  // The specification: "llmRequest.* variables are available in request-phase webhooks only."
  const scope = phase === 'request' ? llmRequestScope : llmResponseScope;
  const at = { host: context.at('target', 'host'), headers: context.at('headers') };
  const config = { ...settings, host: target.host };
  const service = compileWebhookService(config, scope, 'llm::guardrail', context, at);
  if (service === undefined) return undefined;
  return {
    place: service.place,
    address: service.address,
    async check(items, lookup, signal) {
      const body = JSON.stringify({ [memberOf(phase)]: items });
      const question = { phase, path: `/${phase}`, body, mask: masks[phase] };
      const verdict = await service.ask(question, lookup, signal);
      if (verdict.kind !== 'mask') return verdict;
      return { kind: 'mask', items: Object.values(verdict.mask)[0] as unknown[] };
    },
    close: () => service.close(),
  };
}

/** The member that holds the texts, in webhook requests and in masks. */
const memberOf = (phase: Phase): 'messages' | 'choices' => (phase === 'request' ? 'messages' : 'choices');

const items = z.array(z.unknown());
const masks: Readonly<Record<Phase, z.ZodType<Readonly<Record<string, unknown[]>>>>> = {
  request: z.strictObject({ messages: items }),
  response: z.strictObject({ choices: items }),
};
