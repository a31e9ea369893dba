import { azureContentSafety } from './azure-content-safety.ts';
import { bedrockGuardrails } from './bedrock-guardrails.ts';
import { googleModelArmor } from './google-model-armor.ts';
import { openAIModeration } from './openai-moderation.ts';
import { regex } from './regex.ts';
import { webhook } from './webhook.ts';

/** Kinds of guardrails for responses. */
export const responseGuards = [
  webhook,
  regex,
  bedrockGuardrails,
  googleModelArmor,
  azureContentSafety,
] as const;

/** Kinds of guardrails for requests. */
export const requestGuards = [...responseGuards, openAIModeration] as const;
