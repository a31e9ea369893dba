import type { z } from 'zod';
import type { TracePlace } from '../../../core/trace/event.ts';
import type { Phase } from '../../guardrails/outcome.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import type { ContentScope, GuardedText } from './guarded-text.ts';
import type { Rejection } from './rejection.ts';

/** The decision of a guardrail. A mask has one text for each that was checked; only webhooks may return other numbers. */
export type Verdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'mask'; readonly texts: readonly Pick<GuardedText, 'role' | 'content'>[] }
  | { readonly kind: 'reject'; readonly rejection: Rejection };

/** A compiled guardrail. */
export interface Guard {
  readonly place: TracePlace;
  /** Its key in the configuration. */
  readonly kind: string;
  /** For logs: its kind, or the address of its service. */
  readonly name: string;
  /** What the client gets if a text cannot be masked: a key, a name, or a URL that would be none. */
  readonly rejection: Rejection;
  /** Whether it checks this text. */
  sees(text: GuardedText): boolean;
  /**
   * Checks the texts that it sees. Takes at most `LIMITS.guardrailTimeout` ms. Throws `GuardrailError` if it fails and the
   * call must not continue.
   */
  check(texts: readonly GuardedText[], lookup: VariableResolver, signal: AbortSignal): Promise<Verdict>;
  close(): Promise<void>;
}

/** Settings of an item beside those of its kind. */
export interface ItemSettings {
  readonly phase: Phase;
  readonly rejection: Rejection;
  /** Request phase: what the guardrail checks. */
  readonly scope: readonly ContentScope[];
}

/** A kind of guardrail: its key in the configuration, its settings, and its compiler. */
export interface GuardKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  /** Whether `scope` may differ from the default (upstream). */
  readonly hasScope: boolean;
  /** Whether `rejection` applies. */
  readonly hasRejection: boolean;
  /** Reports configuration problems. Returns undefined if the guardrail cannot be used because of them. */
  compile(
    config: z.output<Schema>,
    item: ItemSettings,
    context: CompileContext,
  ): Omit<Guard, 'rejection'> | undefined;
}

export function defineGuard<Key extends string, Schema extends z.ZodType>(
  kind: GuardKind<Key, Schema>,
): GuardKind<Key, Schema> {
  return kind;
}

/** Whether a guardrail with this scope sees a text. Texts of responses, and outside of a conversation, have no scope: all are checked. */
export function inScope(scope: readonly ContentScope[], text: GuardedText): boolean {
  return text.scope === undefined || scope.includes(text.scope);
}
