import { regex } from './regex.ts';
import { webhook } from './webhook.ts';

/** Kinds of guardrails for requests. */
export const requestGuards = [webhook, regex] as const;

/** Kinds of guardrails for responses. */
export const responseGuards = [webhook, regex] as const;
