import type { z } from 'zod';
import type { TracePlace } from '../../core/trace/event.ts';
import type { CompileContext } from '../runtime/compile-context.ts';
import type { Exchange, Reply } from './request-context.ts';

/**
 * A policy at run time. `request` returns nothing to carry on or a reply to stop; it throws an `AppError` to
 * refuse. `response` runs for every request that entered, whatever happened after, and must not throw.
 */
export interface Policy {
  readonly key: string;
  /** Where it stands in the configuration, and what it says there without secrets: for traces. */
  readonly origin?: { readonly place: TracePlace; readonly shown: unknown };
  /** Exact paths that the policy answers itself: the route takes them too, whatever it matches otherwise. */
  readonly paths?: readonly string[];
  /** Host names under which the policy's configuration says that the route is reached. */
  readonly hostnames?: readonly string[];
  /** A file that the policy reads again itself, absolute: `changed` is called when it was written. */
  readonly rereads?: { readonly file: string; changed(): void };
  request?(x: Exchange): undefined | Reply | Promise<undefined | Reply>;
  response?(x: Exchange, reply: Reply): void;
  /** Wraps everything after admission: for what bounds or repeats the rest. */
  around?(x: Exchange, next: () => Promise<Reply>): Promise<Reply>;
  close?(): void | Promise<void>;
}

/** A policy kind: its key under `policies`, its schema (whose descriptions are its documentation), its compiler. */
export interface PolicyKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  /** Runs once per configuration load; problems of the configuration are reported through `context`. */
  compile(config: z.output<Schema>, context: CompileContext): Omit<Policy, 'key' | 'origin'>;
}

/** Gives a policy its types. The policy is used once it stands in `policies/index.ts`. */
export function definePolicy<Key extends string, Schema extends z.ZodType>(
  kind: PolicyKind<Key, Schema>,
): PolicyKind<Key, Schema> {
  return kind;
}
