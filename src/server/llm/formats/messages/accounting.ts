/**
 * Instructions without the line that Claude Code (since 2.1.36) puts before them, usually as a text of its own, to tell Anthropic how it
 * was started. Bedrock refuses it (anthropics/claude-code#24168), and as it differs in each request, other providers would find no
 * prompt in their cache.
 */
export const withoutAccounting = (text: string): string =>
  text.replace(/^x-anthropic-billing-header:[^\r\n]*(?:\r?\n)*/, '');
