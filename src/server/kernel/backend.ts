import type { z } from 'zod';
import type { CompileContext } from './compile-context.ts';
import type { Backend, ClientApi, Reply } from './request-context.ts';
import { Slot } from './slot.ts';

/** Timeouts of backend calls in ms, set by the policy `timeout`. If unset, the backend applies its own defaults. */
export const backendTimeouts = new Slot<{
  /** Maximum time until the response headers of one call arrive. */
  readonly request?: number | undefined;
  /** Maximum time between two chunks of the response body; 0 means no limit. */
  readonly idle?: number | undefined;
}>();

/**
 * Calls the backend of a request, possibly several times, and returns the reply for the client. Set by the policy `retry`.
 * Each `call` picks a backend, if possible one that has not been called yet.
 */
export const backendCaller = new Slot<(call: () => Promise<Reply>) => Promise<Reply>>();

/**
 * What policies wait for once the backend has answered, before the response phase: for the whole body, for example. A wait
 * that rejects answers the request with its error.
 */
export const responseWaits = new Slot<((reply: Reply) => Promise<void>)[]>();

/** A kind of backend: its key in `backends[]`, its schema, and how to open it. */
export interface BackendKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  /** The API that clients of its routes use, if not plain HTTP. */
  readonly api?: ClientApi;
  /** What every client that is not restricted by a policy could do at the operator's expense: a verb phrase, or undefined. */
  exposes?(config: z.output<Schema>): string | undefined;
  /** `name` is the backend's name in configuration dumps. Unlike its path, a reload does not change it. */
  open(config: z.output<Schema>, context: CompileContext, name: string): Backend;
}

export function defineBackend<Key extends string, Schema extends z.ZodType>(
  kind: BackendKind<Key, Schema>,
): BackendKind<Key, Schema> {
  return kind;
}
