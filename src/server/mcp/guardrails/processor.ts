import type { z } from 'zod';
import type { TracePlace } from '../../../core/trace/event.ts';
import type { Phase } from '../../guardrails/webhook.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { VariableResolver } from '../../kernel/expression.ts';

/** What a processor checks. Names are those of the target. */
export interface GuardedMessage {
  readonly phase: Phase;
  readonly method: string;
  /** One target, except for lists of several. */
  readonly targets: readonly string[];
  /** JSON text of the parameters of the request, as they are sent to the target. */
  readonly params: string;
  /** JSON text of the result; undefined in the request phase. */
  readonly result: string | undefined;
  /** Headers of the client's request, with names in lower case, after `:method`, `:scheme`, `:authority` and `:path`. */
  headers(): readonly (readonly [name: string, value: string])[];
}

/** `mask`: other parameters (request phase) or another result, as JSON text. `reason` is sent to the client. */
export type MessageVerdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'mask'; readonly text: string }
  | { readonly kind: 'reject'; readonly code: number; readonly reason: string; readonly data?: unknown };

export interface Processor {
  readonly place: TracePlace;
  /** Throws `GuardrailError` if the message cannot be checked and must not pass. */
  check(
    message: GuardedMessage,
    lookup: VariableResolver,
    signal: AbortSignal,
  ): MessageVerdict | Promise<MessageVerdict>;
  close(): Promise<void>;
}

/** A kind of processor: the value of `kind`, its other settings, and its compiler. */
export interface ProcessorKind<Kind extends string = string, Fields extends z.ZodRawShape = z.ZodRawShape> {
  readonly kind: Kind;
  readonly fields: Fields;
  compile(config: z.output<z.ZodObject<Fields>>, context: CompileContext): Processor | undefined;
}

export function defineProcessor<Kind extends string, Fields extends z.ZodRawShape>(
  kind: ProcessorKind<Kind, Fields>,
): ProcessorKind<Kind, Fields> {
  return kind;
}

/** JSON-RPC error codes of rejections (upstream). */
export const REJECTED = { denied: -32001, exhausted: -32003, invalid: -32600 } as const;

/** Whether new parameters name the same item: rules have decided on that one. Both are JSON texts of objects. */
export function isSameItem(before: string, after: string): boolean {
  const [one, other] = [before, after].map((text) => JSON.parse(text) as Readonly<Record<string, unknown>>);
  return ['name', 'uri'].every((key) => one?.[key] === other?.[key]);
}
