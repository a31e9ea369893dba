import type { SqlRow, Statement, StatementResult } from '../kernel/database.ts';

/** A call: a query, a transaction, or the last one. Calls are answered in order. */
export type Call =
  | { readonly id: number; readonly kind: 'query'; readonly statement: Statement }
  | { readonly id: number; readonly kind: 'transaction'; readonly statements: readonly Statement[] }
  | { readonly id: number; readonly kind: 'close' };

export type CallResult = readonly SqlRow[] | readonly StatementResult[] | undefined;

export type Answer =
  | { readonly kind: 'opened' }
  | { readonly kind: 'refused'; readonly message: string; readonly help: string }
  | { readonly kind: 'log'; readonly message: string; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly kind: 'result'; readonly id: number; readonly value: CallResult }
  | { readonly kind: 'failure'; readonly id: number; readonly detail: string };
