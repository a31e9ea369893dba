import type { Log } from '../../../core/log.ts';
import type { Redactor } from '../../../core/redact.ts';
import type { PolicyDefinition } from './api.ts';

/** A policy as an entry of the configuration uses it. */
export interface PolicyUse {
  readonly definition: PolicyDefinition;
  readonly options: unknown;
  /** How long a function may take, in ms. */
  readonly timeout: number;
  readonly log: Log;
  readonly redactor: () => Redactor;
  /** Counts a call of a function. */
  count(name: string, outcome: Outcome): void;
}

/** What became of a call of a function. */
export type Outcome = 'pass' | 'answer' | 'deny' | 'fail';

/** In the log. */
export const POLICY_SCOPE = 'agctl::policy';
