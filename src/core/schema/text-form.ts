import { z } from 'zod';
import { joinWords } from './describe-types.ts';
import { formatName } from './size.ts';
import { alternatives, definition, layerMeta, type Schema } from './walk.ts';

/** The expected format of a text, and an example. */
interface TextForm {
  readonly expected: string;
  readonly help?: string;
}

/**
 * For a number or boolean that would be wrong in quotes too: `expected` with the format instead of `text`, so that
 * adding quotes does not lead to the next error. Undefined for other values, and if the format has no description.
 */
export function wrongForm(
  expected: string,
  value: unknown,
  schemas: readonly Schema[],
  key: string,
): TextForm | undefined {
  if (typeof value !== 'number' && typeof value !== 'boolean') return undefined;
  const forms = textForms(schemas, value);
  if (forms.length === 0) return undefined;
  const examples = schemas.flatMap((schema) => layerMeta(schema)).flatMap((meta) => meta.examples ?? []);
  const example = examples.find((each) => typeof each === 'string');
  return {
    expected: expected.replace(/\btext\b/, () => joinWords(forms)),
    ...(example !== undefined && { help: `for example \`${key}: ${example}\`` }),
  };
}

/** Descriptions of the accepted formats; none if the value as text would match one of them. */
function textForms(schemas: readonly Schema[], value: number | boolean): string[] {
  const texts = schemas
    .flatMap((schema) => alternatives(schema))
    .filter((each) => definition(each).type === 'string');
  const forms: string[] = [];
  for (const text of texts) {
    const { error } = z.safeParse(text, String(value), { error: () => '' });
    if (error === undefined) return [];
    const form = error.issues[0] && formOf(error.issues[0]);
    if (form !== undefined) forms.push(form);
  }
  return forms;
}

/**
 * The description from the author of the check (what follows `expected` in the message), or the name of a format that
 * zod knows.
 */
function formOf(issue: z.core.$ZodIssue): string | undefined {
  if (issue.code === 'invalid_format' && issue.message === '') return formatName(issue.format);
  return /^expected (.*)$/s.exec(issue.message)?.[1];
}
