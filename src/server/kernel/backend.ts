import type { z } from 'zod';
import type { CompileContext } from './compile-context.ts';
import type { Backend, ClientApi } from './request-context.ts';
import { Slot } from './slot.ts';

/** Time limits of calls to a backend, set by the policy `timeout`. In ms; the backend has defaults of its own. */
export const backendTimeouts = new Slot<{
  /** How long one call may take until its response headers. */
  readonly request?: number | undefined;
  /** How long the response body may be silent; 0 for no limit. */
  readonly idle?: number | undefined;
}>();

/** A backend kind: its key in `backends[]`, its schema, and how to open it. */
export interface BackendKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  /** The API that clients of its routes speak, when it is not plain HTTP. */
  readonly api?: ClientApi;
  /** `name` is that of the backend as dumps have it: unlike its place, a reload does not change it. */
  open(config: z.output<Schema>, context: CompileContext, name: string): Backend;
}

export function defineBackend<Key extends string, Schema extends z.ZodType>(
  kind: BackendKind<Key, Schema>,
): BackendKind<Key, Schema> {
  return kind;
}
