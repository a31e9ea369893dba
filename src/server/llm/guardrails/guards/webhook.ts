import { z } from 'zod';
import { membersOf } from '../../../../core/foreign.ts';
import { list, mapping } from '../../../../core/schema/mapping.ts';
import { GuardrailError, type Phase } from '../../../guardrails/outcome.ts';
import { compileWebhookService, webhookFields } from '../../../guardrails/webhook.ts';
import { llmRequestScope, llmResponseScope } from '../../variables.ts';
import { defineGuard, type Verdict } from '../guard.ts';
import type { GuardedText } from '../guarded-text.ts';
import { webhookRejection } from '../rejection.ts';

const { host, headers, failureMode } = webhookFields;

const schema = mapping('A server that checks texts.', {
  target: mapping('The webhook server.', { host }),
  headers,
  inspect: list(
    'Texts to check beside the content of messages and choices, each as an item of its own: arguments of tool calls, reasoning, and other texts such as titles of documents.',
    z.enum(['toolCalls', 'reasoning', 'other']),
  ),
  failureMode: failureMode.describe(
    'What happens if the webhook fails: `failClosed` rejects the request with 503, `failOpen` continues.',
  ),
});

export const webhook = defineGuard({
  key: 'webhook',
  schema,
  hasScope: false,
  hasRejection: false,
  compile({ target, inspect, ...settings }, { phase }, context) {
    // The specification: "llmRequest.* variables are available in request-phase webhooks only."
    const scope = phase === 'request' ? llmRequestScope : llmResponseScope;
    const at = { host: context.at('target', 'host'), headers: context.at('headers') };
    const service = compileWebhookService(
      { ...settings, host: target.host },
      scope,
      'llm::guardrail',
      context,
      at,
    );
    if (service === undefined) return undefined;
    const parts = new Set<string>(['content', ...inspect]);
    return {
      place: service.place,
      kind: 'webhook',
      name: service.address,
      sees: ({ part, scope }) => parts.has(part) && scope !== 'toolDefinitions',
      async check(texts, lookup, signal): Promise<Verdict> {
        const body = JSON.stringify({ [MEMBERS[phase]]: texts.map((text) => sentItem(text, phase)) });
        const question = { phase, path: `/${phase}`, body, mask: masks[phase] };
        const verdict = await service.ask(question, lookup, signal);
        if (verdict.kind === 'pass') return verdict;
        if (verdict.kind === 'reject')
          return { kind: 'reject', rejection: webhookRejection(verdict.status, verdict.body) };
        const masked = Object.values(verdict.mask)[0] ?? [];
        return { kind: 'mask', texts: masked.map((item) => maskedText(item, phase)) };
      },
      close: () => service.close(),
    };
  },
});

/** The member that holds the texts, in webhook requests and in masks. */
const MEMBERS: Readonly<Record<Phase, 'messages' | 'choices'>> = { request: 'messages', response: 'choices' };

const items = z.array(z.unknown());
const masks: Readonly<Record<Phase, z.ZodType<Readonly<Record<string, unknown[]>>>>> = {
  request: z.strictObject({ messages: items }),
  response: z.strictObject({ choices: items }),
};

function sentItem({ role, content }: GuardedText, phase: Phase): object {
  return phase === 'request' ? { role, content } : { message: { role, content } };
}

function maskedText(item: unknown, phase: Phase): { role: string; content: string } {
  const text = phase === 'request' ? item : membersOf(item)['message'];
  const { role, content } = membersOf(text);
  if (typeof role !== 'string' || typeof content !== 'string')
    throw new GuardrailError('the mask has an item without `role` and `content`');
  return { role, content };
}
