import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS } from '../../../core/memory-limits.ts';
import { isNamespace, NAMESPACE_FORM } from '../../namespace.ts';
import type { Memories } from '../memories.ts';
import type { Memory } from '../memory.ts';
import { ENTITY_TYPES } from '../store.ts';

/** One validated request. */
export interface ValidRequest<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Aborted when the caller has disconnected. */
  readonly signal: AbortSignal;
}

export interface Call<Params, Query, Body> extends ValidRequest<Params, Query, Body> {
  /** The memory of the caller's namespace; an endpoint can reach no other. */
  readonly memory: Memory;
}

/** A request of the main key to an endpoint for all namespaces. */
export interface CallForAll<Params, Query, Body> extends ValidRequest<Params, Query, Body> {
  readonly memories: Memories;
}

export interface Answer {
  /** Default: 200. */
  readonly status?: number;
  /** JSON, or a stream of bytes. */
  readonly body: object;
  /** Content type of a stream. Default: application/octet-stream. */
  readonly type?: string;
}

interface EndpointParts<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path below `/api/memory`. */
  readonly path: string;
  /** What the log calls it when it has deleted something, such as `memory.forget`. */
  readonly audit?: string;
  readonly params?: Params;
  readonly query?: Query;
  /** Longest body in bytes. Default: `MEMORY_API_LIMITS.requestBytes`. */
  readonly requestBytes?: number;
  /** A request without a body is validated as undefined. */
  readonly body?: Body;
}

type AnyShape = EndpointParts<z.ZodType, z.ZodType, z.ZodType>;

/** An endpoint of the REST interface: one file in `endpoints/` and one entry in its list. */
export type Endpoint = AnyShape &
  (
    | { readonly isForAll: false; run(call: Call<never, never, never>): Promise<Answer> }
    | { readonly isForAll: true; run(call: CallForAll<never, never, never>): Promise<Answer> }
  );

/** An endpoint for the memory of the caller's namespace. Its `run` throws AppError. */
export function defineEndpoint<
  Params extends z.ZodType = z.ZodNever,
  Query extends z.ZodType = z.ZodNever,
  Body extends z.ZodType = z.ZodNever,
>(
  endpoint: EndpointParts<Params, Query, Body> & {
    run(call: Call<z.output<Params>, z.output<Query>, z.output<Body>>): Promise<Answer>;
  },
): Endpoint {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `addEndpoint` checks what it passes against its schemas
  return { ...endpoint, isForAll: false } as unknown as Endpoint;
}

/** An endpoint for all namespaces, which refuses their keys. */
export function defineEndpointForAll<
  Params extends z.ZodType = z.ZodNever,
  Query extends z.ZodType = z.ZodNever,
  Body extends z.ZodType = z.ZodNever,
>(
  endpoint: EndpointParts<Params, Query, Body> & {
    run(call: CallForAll<z.output<Params>, z.output<Query>, z.output<Body>>): Promise<Answer>;
  },
): Endpoint {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
  return { ...endpoint, isForAll: true } as unknown as Endpoint;
}

// Fields used by several endpoints.

/** A whole number in a query string. */
export function wholeNumber(min: number, max: number, fallback: number): z.ZodType<number> {
  const expected = `expected a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, expected)
    .transform(Number)
    .refine((value) => value >= min && value <= max, expected)
    .default(fallback);
}

export const pageLimit = wholeNumber(1, LIMITS.pageSize, 100);
/** What is wrong with a cursor that did not come from a response. */
export const NOT_A_CURSOR = 'expected the nextCursor of the previous page';
export const cursor = z.string().min(1).max(LIMITS.nameLength).optional();
export const sessionId = z.string().min(1).max(LIMITS.nameLength);
export const namespaceName = z.string().refine(isNamespace, `expected ${NAMESPACE_FORM}`);
export const entityType = z.enum(ENTITY_TYPES);

/** Names separated by commas, in a query string. */
export const entityTypes = z
  .string()
  .transform((text) => text.split(','))
  .pipe(z.array(entityType).min(1))
  .optional();
