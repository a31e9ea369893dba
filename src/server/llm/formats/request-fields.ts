import type { PromptField } from './format.ts';
import { formats } from './index.ts';

/**
 * The members with prompts of every format. They are read whatever the path of a call, because a provider may read any of
 * them. Of members with the same name, that of the first format counts.
 */
export const promptFields: readonly PromptField[] = [
  ...new Map(
    formats
      .flatMap(({ promptFields: fields = [] }) => fields)
      .toReversed()
      .map((field) => [field.name, field]),
  ).values(),
].toReversed();
