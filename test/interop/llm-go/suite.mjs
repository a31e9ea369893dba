// The official Go clients of OpenAI and Anthropic.
import { goProgram } from '../go-program.mjs';

export const { missing, start } = goProgram(import.meta.dirname, 'LLM_GO');
