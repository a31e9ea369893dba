// The official Go clients of OpenAI and Anthropic.
import { goPrograms } from '../go-program.mjs';

export const { missing, start } = goPrograms(import.meta.dirname, { LLM_GO: '.' });
