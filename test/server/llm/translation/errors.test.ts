import { type Case, runCases } from './cases.ts';

interface ErrorCase extends Case {
  readonly status: number;
}

runCases<ErrorCase>('errors', ({ input, status }, from, to) => to.writeError(from.readError(input, status)));
