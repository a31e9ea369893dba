import { BUDGET_FORMS, parseBudget } from './budget.ts';
import { isRecord, membersOf } from './foreign.ts';

/** What an operator chooses for a virtual key. */
export interface KeySettings {
  /** Unique among keys that are not revoked; the name in logs and lists. */
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

/** A key as the admin server shows it, in `/api/keys`. Times are ISO 8601. */
export interface ShownKey {
  readonly id: string;
  readonly name: string;
  /** Its last characters. */
  readonly hint: string;
  readonly state: 'active' | 'expired' | 'revoked';
  readonly createdAt: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
  readonly allowedModels?: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly budgets: readonly ShownBudget[];
}

/** A budget and its use in the current window. Amounts of USD are decimal text, those of tokens numbers. */
export interface ShownBudget {
  /** Such as `10USD/day`. */
  readonly limit: string;
  readonly spent: string | number;
  /** By open calls. */
  readonly reserved: string | number;
  /** Absent for `total`. */
  readonly resetsAt?: string;
}

const NAME = /^[\w.@-]{1,64}$/;
const MAX_BUDGETS = 10;
const MAX_MODELS = 1_000;
/** All keys are kept in memory. */
const MAX_METADATA = 4_096;

/** Unix time in ms of a time that begins with a date; NaN for anything else, of which `Date.parse` makes days: 2045 of 45. */
const timeIn = (value: unknown): number =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN;

/** Reads the settings of a new key. Returns what is wrong with them as a string. */
export function readKeySettings(value: unknown, now: number): KeySettings | string {
  if (!isRecord(value))
    return 'expected a JSON object with `name`, and optionally `allowedModels`, `metadata`, `budgets`, `expiresAt`';
  const { name, allowedModels, metadata = {}, budgets = [], expiresAt, ...rest } = value;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    return `\`${unknown.slice(0, 64)}\`: unknown member; expected \`name\`, \`allowedModels\`, \`metadata\`, \`budgets\`, \`expiresAt\``;
  if (typeof name !== 'string' || !NAME.test(name))
    return '`name`: expected 1 to 64 letters, digits, `.`, `_`, `-` or `@`, such as `ann-laptop`';
  if (allowedModels !== undefined && !(isTexts(allowedModels) && allowedModels.length <= MAX_MODELS))
    return `\`allowedModels\`: expected a list of up to ${MAX_MODELS} names or patterns of models, such as \`gpt-*\``;
  if (!isRecord(metadata)) return '`metadata`: expected an object, such as {"team": "red"}';
  if (JSON.stringify(metadata).length > MAX_METADATA)
    return `\`metadata\`: expected at most ${MAX_METADATA} characters of JSON`;
  if (!Array.isArray(budgets) || budgets.length > MAX_BUDGETS)
    return `\`budgets\`: expected a list of up to ${MAX_BUDGETS} texts such as \`10USD/day\``;
  const problem = problemOfBudgets(budgets);
  if (problem !== undefined) return problem;
  const expires = expiresAt === undefined ? undefined : timeIn(expiresAt);
  if (expires !== undefined && !(expires > now))
    return '`expiresAt`: expected a time in the future, such as `2030-01-01T00:00:00Z`';
  return {
    name,
    metadata,
    budgets,
    ...(allowedModels === undefined ? {} : { allowedModels }),
    ...(expires === undefined ? {} : { expiresAt: expires }),
  };
}

function problemOfBudgets(budgets: readonly unknown[]): string | undefined {
  const kinds: string[] = [];
  for (const text of budgets) {
    const budget = typeof text === 'string' ? parseBudget(text) : undefined;
    if (budget === undefined) return `\`budgets\`: \`${String(text).slice(0, 64)}\`: ${BUDGET_FORMS}`;
    kinds.push(`${budget.unit} per ${budget.window}`);
  }
  const twice = kinds.find((kind, index) => kinds.indexOf(kind) !== index);
  return twice === undefined ? undefined : `\`budgets\`: two budgets of ${twice}: expected one`;
}

/** Reads the settings of a key from the database, where times are numbers. Undefined if something else has written them. */
export function readStoredSettings(value: unknown): Omit<KeySettings, 'name'> | undefined {
  const { allowedModels, metadata, budgets, expiresAt } = membersOf(value);
  if (allowedModels !== undefined && !isTexts(allowedModels)) return undefined;
  if (!isRecord(metadata) || !isTexts(budgets) || problemOfBudgets(budgets) !== undefined) return undefined;
  if (expiresAt !== undefined && !(typeof expiresAt === 'number' && Number.isFinite(expiresAt)))
    return undefined;
  return {
    metadata,
    budgets,
    ...(allowedModels === undefined ? {} : { allowedModels }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.every((text) => typeof text === 'string' && text !== '' && text.length <= 256);
