import { llmError } from '../errors.ts';
import type { Members } from '../json-members.ts';
import type { Fields } from './format.ts';

/** Throws an `AppError` (400) unless a field has a list. */
export function requireList(body: Fields, field: string): void {
  if (Array.isArray(body.get(field))) return;
  throw llmError('llm_invalid', 'missing_required_parameter', `${field}: a list is required`);
}

/** Some fields of a body. */
export const fieldsOf = (body: Fields, fields: readonly string[]): Members =>
  Object.fromEntries(fields.map((field) => [field, body.get(field)]));
