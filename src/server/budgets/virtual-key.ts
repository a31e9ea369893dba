import { hash } from 'node:crypto';
import { BUDGET_FORMS, type BudgetLimit, parseBudget } from '../../core/budget.ts';

/** What an operator chooses for a key. */
export interface KeySettings {
  /** Unique; the name in logs, metrics and lists. */
  readonly name: string;
  /** Patterns of the models that it may use; all if undefined. */
  readonly allowedModels?: readonly string[] | undefined;
  /** Values that expressions read as `apiKey.<name>`. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Such as `10USD/day`. */
  readonly budgets: readonly string[];
  /** Unix time in ms. */
  readonly expiresAt?: number | undefined;
}

/** A virtual key. The key itself is not kept. */
export interface VirtualKey extends KeySettings {
  readonly id: string;
  /** SHA-256, in hexadecimal digits. */
  readonly hash: string;
  /** The last characters of the key, by which its owner recognizes it. */
  readonly hint: string;
  readonly createdAt: number;
  readonly revokedAt?: number | undefined;
}

/** The hash by which keys are looked up. Keys have 256 random bits, so a fast hash cannot be reversed by guessing. */
export const hashOfKey = (key: string): string => hash('sha256', key);

/** What is wrong with the settings of a new key; undefined if nothing. */
export function problemOfKey({
  name,
  allowedModels,
  metadata,
  budgets,
  expiresAt,
}: KeySettings): string | undefined {
  if (!NAME.test(name))
    return '`name`: expected 1 to 64 letters, digits, `.`, `_`, `-`, `@` or `/`, such as `ann-laptop`';
  if (allowedModels?.some((model) => model === '' || model.length > 256) === true)
    return '`models`: expected names or patterns of models, such as `gpt-*`';
  if ((allowedModels?.length ?? 0) > 1_000) return '`models`: expected at most 1000 models';
  const invalid = budgets.find((text) => parseBudget(text) === undefined);
  if (invalid !== undefined) return `\`budgets\`: \`${invalid.slice(0, 64)}\`: ${BUDGET_FORMS}`;
  if (budgets.length > MAX_BUDGETS) return `\`budgets\`: expected at most ${MAX_BUDGETS} budgets`;
  const counted = budgets.map((text) => parseBudget(text) as BudgetLimit);
  if (new Set(counted.map(({ unit, window }) => `${unit}/${window}`)).size < counted.length)
    return '`budgets`: expected one budget per unit and window';
  if (JSON.stringify(metadata).length > MAX_METADATA)
    return `\`metadata\`: expected at most ${MAX_METADATA} characters as JSON`;
  if (expiresAt !== undefined && expiresAt <= Date.now()) return '`expires`: expected a time in the future';
  return undefined;
}

const NAME = /^[\w.@/-]{1,64}$/;
const MAX_BUDGETS = 10;
/** All keys are kept in memory. */
const MAX_METADATA = 4_096;
