import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { Phase } from './verdict.ts';
import { compileWebhook, type Webhook, webhookSchema } from './webhook.ts';

const itemSchema = z.strictObject({ webhook: webhookSchema }).describe('One guardrail.');

export const guardrailsSchema = z
  .strictObject({
    request: z
      .array(itemSchema)
      .default([])
      .describe('Guardrails for requests, in order. Each receives the texts left by the previous one.'),
    response: z
      .array(itemSchema)
      .default([])
      .describe('Guardrails for responses, in order. Streams are held back until they are checked.'),
  })
  .describe('Checks of requests and responses by webhooks.');

export interface Guardrails {
  readonly request: readonly Webhook[];
  readonly response: readonly Webhook[];
  close(): Promise<void>;
}

export function compileGuardrails(
  config: z.output<typeof guardrailsSchema>,
  context: CompileContext,
): Guardrails {
  const compile = (phase: Phase): Webhook[] =>
    config[phase].flatMap(
      ({ webhook }, index) => compileWebhook(webhook, phase, context.at(phase, index, 'webhook')) ?? [],
    );
  const request = compile('request');
  const response = compile('response');
  return {
    request,
    response,
    close: async () => {
      await Promise.all([...request, ...response].map((webhook) => webhook.close()));
    },
  };
}
