import { z } from 'zod';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { formats } from '../formats/index.ts';
import { type Endpoint, endpointOf, passthroughAt } from './endpoints.ts';

/** Types of calls besides those of wire formats. */
const OTHER_TYPES = ['models', 'passthrough', 'detect'] as const;

const FORMAT_TYPES = formats.flatMap(({ key, isRoutable }) => (isRoutable === true ? key : []));

export const routesSchema = z
  .record(
    z
      .string()
      .regex(/^(?:\*|\/\S*)$/, { error: 'expected the end of a path, such as `/v1/messages`, or `*`' }),
    z.enum([...FORMAT_TYPES, ...OTHER_TYPES]),
  )
  .describe(
    'Calls that are allowed, by the end of their path; the longest one that fits counts, and `*` fits all. The value is the type of the call. `passthrough` and `detect` forward it unchanged, and read usage where it is recognized. Without this setting: all calls that a `models` entry allows by default.',
  );

export type RoutedCalls = z.output<typeof routesSchema>;

/** The type of the call of a request; undefined if it is not allowed. */
export function typeOf(routes: RoutedCalls, path: string): RoutedCalls[string] | undefined {
  const [longest] = Object.keys(routes)
    .filter((end) => end === '*' || path.endsWith(end))
    .toSorted((a, b) => specificity(b) - specificity(a));
  return longest === undefined ? undefined : routes[longest];
}

const specificity = (end: string): number => (end === '*' ? 0 : end.length);

/** The call of a request whose type is known. Undefined for one that is not a call of a model, or with another method. */
export function routedEndpoint(
  type: RoutedCalls[string],
  { method, path }: Pick<RequestContext, 'method' | 'path'>,
): Endpoint | undefined {
  if (type === 'passthrough' || type === 'detect') return { ...passthroughAt(method, path), isRouted: true };
  if (type === 'models' || type === 'realtime') return undefined;
  return method === 'POST' ? endpointOf(type) : undefined;
}
