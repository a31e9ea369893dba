import type { z } from 'zod';
import type { CompileContext } from '../runtime/compile-context.ts';
import type { Exchange, Reply } from './request-context.ts';

/** What answers a request that the policies let through. */
export interface Backend {
  handle(x: Exchange): Promise<Reply>;
  /** A stop was asked for: responses that wait for nothing in particular should end. */
  drain?(): void;
  /** It comes in place of an older backend. True: it looks after that one from now on, and closes it. */
  takeOver?(previous: unknown): boolean;
  /** Another one looks after it, and the last request that was routed to it has ended. */
  retired?(): void;
  /** Ends what it holds open (children, connections); called once, after its last request. */
  close(): Promise<void>;
}

/** A backend kind: its key in `backends[]`, its schema, and how to open it. */
export interface BackendKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  /** `name` is that of the backend as dumps have it: unlike its place, a reload does not change it. */
  open(config: z.output<Schema>, context: CompileContext, name: string): Backend;
}

export function defineBackend<Key extends string, Schema extends z.ZodType>(
  kind: BackendKind<Key, Schema>,
): BackendKind<Key, Schema> {
  return kind;
}
