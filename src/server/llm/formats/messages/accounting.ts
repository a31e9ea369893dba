import { textIn } from '../../../../core/foreign.ts';

/**
 * Whether a text is what Claude Code (since 2.1.36) puts before its instructions to tell Anthropic how it was started. Bedrock
 * refuses it (anthropics/claude-code#24168), and as it differs in each request, other providers would find no prompt in their cache.
 */
export const isAccounting = (text: unknown): boolean =>
  textIn(text).startsWith('x-anthropic-billing-header:');
