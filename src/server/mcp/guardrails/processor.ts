import type { z } from 'zod';
import type { Reason } from '../../../core/errors.ts';
import { membersOf, parseJson } from '../../../core/foreign.ts';
import type { TracePlace } from '../../../core/trace/event.ts';
import type { Phase } from '../../guardrails/outcome.ts';
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
  /** What is checked: in the request phase the parameters, and then the result or the JSON-RPC error. */
  readonly part: 'params' | 'result' | 'error';
  /** JSON text of that part. */
  readonly text: string;
  /** Headers of the client's request, with names in lower case, after `:method`, `:scheme`, `:authority` and `:path`. */
  headers(): readonly (readonly [name: string, value: string])[];
}

/** What a processor wants beside another message, in the request phase. */
export interface Effects {
  /** Changes to the headers of the request to an HTTP target. */
  readonly headers?: HeaderMutation | undefined;
  /** Values for the variable `extMcp`. */
  readonly values?: Readonly<Record<string, unknown>> | undefined;
}

/** First `set`, several values of one name form a list, then `remove`. */
export interface HeaderMutation {
  readonly set: readonly (readonly [name: string, value: string])[];
  readonly remove: readonly string[];
}

/** `mask`: another text of the part that was checked. `reason` is sent to the client. */
export type MessageVerdict =
  | { readonly kind: 'pass'; readonly effects?: Effects }
  | { readonly kind: 'mask'; readonly text: string; readonly effects?: Effects }
  | { readonly kind: 'reject'; readonly code: number; readonly reason: string; readonly data?: unknown };

export interface Processor {
  readonly place: TracePlace;
  /** `reason` of requests that it rejects or cannot check, if it is part of a policy. Default: `Guardrail`. */
  readonly reason?: Reason;
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
  const [one, other] = [before, after].map((text) => membersOf(parseJson(text)));
  return ['name', 'uri'].every((key) => one?.[key] === other?.[key]);
}
