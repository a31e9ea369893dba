import { z } from 'zod';
import { membersOf } from '../../../core/foreign.ts';
import { joinWords } from '../../../core/schema/describe-types.ts';
import { alternatives, definition, layerMeta, type Schema } from '../../../core/schema/walk.ts';

/** Message for one failed check. */
export interface CheckMessage {
  readonly message: string;
  readonly label?: string;
  readonly help?: string;
  readonly notes?: readonly string[];
}

const UNITS: Readonly<Record<string, string>> = {
  string: 'character',
  array: 'entry',
  set: 'entry',
  file: 'byte',
};

/** Message for a number, text or list that is too large, too small or not a multiple of the allowed step. */
export function describeSize(
  issue: z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall | z.core.$ZodIssueNotMultipleOf,
): CheckMessage {
  if (issue.code === 'not_multiple_of')
    return { message: `the number must be a multiple of ${issue.divisor}` };
  const limit = Number(issue.code === 'too_big' ? issue.maximum : issue.minimum);
  const unit = UNITS[issue.origin];
  if (unit === undefined) return describeNumber(issue.code, limit, issue.inclusive !== false);
  const thing = issue.origin === 'string' ? 'string' : 'list';
  if (issue.code === 'too_small' && limit === 1)
    return {
      message: `the ${thing} must not be empty`,
      ...(thing === 'list' && { help: 'add an entry: `[a, b]`, or each on a line that starts with `- `' }),
    };
  const words = `${limit} ${plural(unit, limit)}`;
  if (issue.exact === true) return { message: `the ${thing} must have exactly ${words}` };
  const size = issue.code === 'too_big' ? 'long' : 'short';
  const bound = issue.code === 'too_big' ? 'at most' : 'at least';
  return { message: `the ${thing} is too ${size}`, label: `${bound} ${words}` };
}

function plural(unit: string, count: number): string {
  if (count === 1) return unit;
  return unit === 'entry' ? 'entries' : `${unit}s`;
}

function describeNumber(code: 'too_big' | 'too_small', limit: number, inclusive: boolean): CheckMessage {
  if (code === 'too_big') {
    return { message: 'the number is too large', label: `${inclusive ? 'at most' : 'less than'} ${limit}` };
  }
  return { message: 'the number is too small', label: `${inclusive ? 'at least' : 'more than'} ${limit}` };
}

const FORMATS: Readonly<Record<string, string>> = {
  url: 'a URL',
  email: 'an e-mail address',
  uuid: 'a UUID',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  cidrv4: 'an IPv4 network',
  cidrv6: 'an IPv6 network',
  hostname: 'a host name',
  base64: 'base64',
  datetime: 'a date and time',
  date: 'a date',
  duration: 'an ISO 8601 duration',
};

/** The name of a text format, with its article. */
function formatName(format: string): string | undefined {
  return FORMATS[format];
}

/** Message for a text that does not match its format. */
export function describeFormat(issue: z.core.$ZodIssueInvalidStringFormat): CheckMessage {
  const { format, pattern } = issue;
  const { prefix, suffix, includes } = membersOf(issue);
  if (typeof prefix === 'string') return { message: `the string must start with \`${prefix}\`` };
  if (typeof suffix === 'string') return { message: `the string must end with \`${suffix}\`` };
  if (typeof includes === 'string') return { message: `the string must contain \`${includes}\`` };
  const name = FORMATS[format];
  if (name !== undefined) return { message: `this is not ${name}` };
  return {
    message: 'the string does not have the expected form',
    ...(pattern !== undefined && { notes: [`expected form: ${pattern}`] }),
  };
}

/** The expected format of a text, and an example. */
interface TextForm {
  readonly expected: string;
  readonly help?: string;
}

/**
 * For a number or boolean that would be wrong in quotes too: `expected` with the format instead of `a string`, so that
 * adding quotes does not lead to the next error. Undefined for other values, and if the format has no description.
 */
export function wrongForm(
  expected: string,
  value: unknown,
  schemas: readonly Schema[],
  key: string,
  isFromEnvironment: boolean,
): TextForm | undefined {
  if (typeof value !== 'number' && typeof value !== 'boolean') return undefined;
  const forms = textForms(schemas, value);
  if (forms.length === 0) return undefined;
  const examples = schemas.flatMap((schema) => layerMeta(schema)).flatMap((meta) => meta.examples ?? []);
  const example = examples.find((each) => typeof each === 'string');
  return {
    expected: expected.replace(/\ba string\b/, () => joinWords(forms)),
    ...(example !== undefined && {
      help: isFromEnvironment
        ? `the variable must have such a value, for example \`${example}\``
        : `for example \`${key}: ${example}\``,
    }),
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

/** A number that is written for people: `5k`, `1.5M`, `10,000`, `10_000`. */
function amountIn(text: string): number | undefined {
  if (/^\d{1,3}(?:[,_']\d{3}){1,4}$/.test(text)) return Number(text.replaceAll(/\D/g, ''));
  const [, digits, unit = ''] = /^(\d{1,6}(?:\.\d{1,3})?)\s?([km])$/i.exec(text) ?? [];
  return digits === undefined ? undefined : Math.round(Number(digits) * (/k/i.test(unit) ? 1e3 : 1e6));
}

/** Help for a number that is too large or too small: what the schemas accept. */
export function rangeHelp(schemas: readonly Schema[]): string | undefined {
  const bounds = schemas
    .flatMap((schema) => alternatives(schema))
    .flatMap((schema) => definition(schema).checks ?? [])
    .flatMap(({ _zod: { def } }) => boundWords(membersOf(def)));
  return bounds.length === 0 ? undefined : `write a number that is ${joinWords(bounds, 'and')}`;
}

function boundWords({ check, value, inclusive }: Readonly<Record<string, unknown>>): string[] {
  if (typeof value !== 'number') return [];
  if (check === 'greater_than') return [`${inclusive === true ? 'at least' : 'more than'} ${value}`];
  return check === 'less_than' ? [`${inclusive === true ? 'at most' : 'less than'} ${value}`] : [];
}

/** The truth value that a word stands for. */
export const truthOf = (text: string): 'true' | 'false' | undefined =>
  /^(?:yes|on|true)$/i.test(text) ? 'true' : /^(?:no|off|false)$/i.test(text) ? 'false' : undefined;

export const isNumeric = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text));

/** Help for a text where a number is expected. It does not repeat the text. */
export function numberHelp(key: string, text: string): string {
  const amount = amountIn(text);
  if (amount !== undefined) return `write \`${amount}\``;
  if (key !== 'port') return 'write a number, without quotes';
  const hasAddress = /[.:]\S*\d$/.test(text);
  return `write a number, such as \`port: 3000\`${hasAddress ? ', and the address as `address`' : ''}`;
}
