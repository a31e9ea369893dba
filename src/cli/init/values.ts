import { isRecord } from '../../core/foreign.ts';
import { isSecretName } from './variables.ts';

/** A number, also as text: `1e-6` is not a number in the YAML of Python. */
export function numeric(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** A duration as a configuration has it. */
export const seconds = (value: number): string =>
  `${Math.max(1, Math.round(value * 1000))}ms`.replace(/000ms$/, 's');

/** A text as a configuration has it: a dollar sign begins a reference there. */
export const literalText = (text: string): string => text.replaceAll('$', '$$$$');

/** A value as a configuration has it. */
export function literal(value: unknown): unknown {
  if (typeof value === 'string') return literalText(value);
  if (Array.isArray(value)) return value.map(literal);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, literal(inner)]));
}

/** As `literal`, without secrets: `take` gets each text whose name says that it is one, and returns what stands for it. */
export function literalWithout(value: unknown, take: (name: string, secret: string) => string): unknown {
  if (Array.isArray(value)) return value.map((each) => literalWithout(each, take));
  if (!isRecord(value)) return literal(value);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      typeof inner === 'string' && inner !== '' && isSecretName(key)
        ? take(key, inner)
        : literalWithout(inner, take),
    ]),
  );
}
