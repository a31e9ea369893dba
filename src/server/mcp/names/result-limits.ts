import { z } from 'zod';
import { namePattern } from './name-pattern.ts';

/** Least tokens of a limit: what is said of the rest has about 80. */
const LEAST = 100;

const tokens = z.int().min(LEAST);

/** `targets[].tools.maxResultTokens`. */
export const maxResultTokensSchema = z
  .union([tokens, z.record(z.string().min(1), tokens)])
  .describe(
    'Estimated tokens (four bytes each) of text that a result may have: for all tools, or by name of the tool, in which `*` matches any characters; an exact name counts before a pattern, and a longer pattern before a shorter one. A longer result is cut, and clients read the rest as a resource, in parts of this size, until their session ends. Structured content over the limit is removed, so these tools are listed without `outputSchema`. Default: no limit.',
  );

export type MaxResultTokens = z.output<typeof maxResultTokensSchema>;

/** The limit of a tool by the target's name of it; undefined if it has none. */
export type ResultLimit = (own: string) => number | undefined;

/** Compiles `maxResultTokens`. */
export function resultLimit(config: MaxResultTokens): ResultLimit {
  if (typeof config === 'number') return () => config;
  const literal = (pattern: string): number => pattern.replaceAll('*', '').length;
  const exact = new Map(Object.entries(config));
  const patterns = [...exact]
    .filter(([pattern]) => pattern.includes('*'))
    .toSorted(([one], [other]) => literal(other) - literal(one))
    .map(([pattern, limit]) => ({ matches: namePattern([pattern]), limit }));
  return (own) => exact.get(own) ?? patterns.find(({ matches }) => matches(own))?.limit;
}
