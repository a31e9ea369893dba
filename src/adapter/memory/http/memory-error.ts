import type { z } from 'zod';
import { AppError, type ErrorCode } from '../../../core/errors.ts';

/** A refusal with details for programs, such as names similar to one that does not exist. */
export class MemoryError extends AppError {
  readonly details: object;

  constructor(code: ErrorCode, message: string, details: object = {}) {
    super(code, { message });
    this.details = details;
  }
}

/**
 * Validates input against a schema and returns the parsed value.
 *
 * @param where the kind of input, for the message: `body`, `query` or `path`
 * @throws MemoryError `memory_invalid` that names every invalid field
 */
export function checked<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  where: string,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, 10).map(({ path, message }) => ({
    field: path.length === 0 ? where : path.join('.'),
    message: message.replace(/^Invalid input: /, ''),
  }));
  const text = problems.map(({ field, message }) => `\`${field}\`: ${message}`).join('; ');
  throw new MemoryError('memory_invalid', text, { problems });
}

/** The body of every refusal: `{"error":{code,message,details}}`. */
export function errorBody(code: string, message: string, details: object = {}): object {
  return { error: { code: code.replace(/^memory_/, ''), message, details } };
}
