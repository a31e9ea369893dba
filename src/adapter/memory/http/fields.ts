import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS } from '../../../core/memory-limits.ts';
import { ENTITY_TYPES } from '../store.ts';

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
export const cursor = z.string().min(1).max(LIMITS.nameLength).optional();
export const sessionId = z.string().min(1).max(LIMITS.nameLength);
export const entityType = z.enum(ENTITY_TYPES);

/** Names separated by commas, in a query string. */
export const entityTypes = z
  .string()
  .transform((text) => text.split(','))
  .pipe(z.array(entityType).min(1))
  .optional();
