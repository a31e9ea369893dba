import { translateRequest } from '../../../../src/server/llm/translation/translate-request.ts';
import { runCases, TARGET } from './cases.ts';

runCases('requests', ({ input }, from, to) => translateRequest(from, to, input, TARGET).body);
