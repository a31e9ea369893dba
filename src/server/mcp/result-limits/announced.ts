import { edit, insertion, valueAt } from '../../kernel/json/json-text.ts';

type Json = Readonly<Record<string, unknown>>;

/** Capabilities with resources: clients read them only at servers that announce them, and the rest of a cut result is one. */
export const withResources = (capabilities: Json): Json =>
  'resources' in capabilities ? capabilities : { ...capabilities, resources: {} };

/** The same in the JSON text of a response. */
export function announcingResources(text: string): string {
  const path = ['result', 'capabilities'];
  const capabilities = valueAt(text, path);
  if (capabilities === undefined || valueAt(text, [...path, 'resources']) !== undefined) return text;
  const change = insertion(text, capabilities.start, '"resources":{}');
  return change === undefined ? text : edit(text, [change]);
}
