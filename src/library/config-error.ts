import type { ConfigProblem } from './api.ts';

/** A configuration is not valid. Its message has all problems, a line each. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(message: string, problems: readonly ConfigProblem[]) {
    super(message);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
