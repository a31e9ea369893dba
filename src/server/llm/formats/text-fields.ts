import type { OutputField, PromptField } from './format.ts';
import { formats } from './index.ts';

// Members of all formats. They are read whatever the path of a call, because a provider may read any member of a request, and
// answer in any format. Of members with the same name, that of the first format counts.

/** Members of requests with prompts. */
export const promptFields: readonly PromptField[] = distinct(
  formats.flatMap(({ promptFields: fields = [] }) => fields),
);

/** Members of responses with model output. */
export const outputFields: readonly OutputField[] = distinct(
  formats.flatMap(({ outputFields: fields = [] }) => fields),
);

function distinct<T extends { readonly name: string }>(fields: readonly T[]): T[] {
  return fields.filter(({ name }, index) => fields.findIndex((each) => each.name === name) === index);
}
