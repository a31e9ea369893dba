// Claude Code, Codex and Gemini CLI, which npm installs here, without a terminal.
import { npmPackages } from '../npm-packages.mjs';

export const { missing, start } = npmPackages('CODING_AGENTS', [
  '@anthropic-ai/claude-code@2.1.197',
  '@openai/codex@0.169.0',
  '@google/gemini-cli@0.61.0',
]);
