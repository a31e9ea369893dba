import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { FieldChanges } from '../request/call-body.ts';
import { llmRequestScope } from '../variables.ts';

/** The specification: "Up to 64 transformations per policy". */
const MAX_TRANSFORMATIONS = 64;

/** CEL expressions by the name of the request field that they set. */
export const transformationSchema = z
  .record(z.string().min(1), z.string().min(1))
  .refine((value) => Object.keys(value).length <= MAX_TRANSFORMATIONS, {
    error: `expected at most ${MAX_TRANSFORMATIONS} transformations`,
  });

export function compileTransformations(
  transformation: z.output<typeof transformationSchema>,
  context: CompileContext,
): FieldChanges['transformations'] {
  return Object.entries(transformation).map(([field, source]) => [
    field,
    context.at(field).cel(source, llmRequestScope),
  ]);
}
