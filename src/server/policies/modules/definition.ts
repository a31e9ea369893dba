import { elementsOf, isRecord, membersOf, textIn } from '../../../core/foreign.ts';
import { nearest } from '../../../core/suggest.ts';
import type { PolicyDefinition } from './api.ts';

const HOOKS = ['request', 'response', 'mcpCall', 'mcpResult', 'llmCall'] as const;
const MEMBERS = ['name', 'options', ...HOOKS];

/** Names are labels of metrics and parts of messages. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** Checks what somebody's code says is a policy. @throws TypeError that says what was expected */
export function policyIn(value: unknown): PolicyDefinition {
  assertPolicy(value);
  return value;
}

function assertPolicy(value: unknown): asserts value is PolicyDefinition {
  if (!isRecord(value))
    throw new TypeError(
      `expected a policy as the default export, such as \`export default definePolicy({ name: 'team', request() {} })\`, found ${value === undefined ? 'none' : typeof value}`,
    );
  const unknown = Object.keys(value).find((key) => !MEMBERS.includes(key));
  if (unknown !== undefined) {
    const meant = nearest(unknown, MEMBERS);
    throw new TypeError(
      `a policy has no member \`${unknown}\`: ${meant === undefined ? `it has ${MEMBERS.join(', ')}` : `did you mean \`${meant}\`?`}`,
    );
  }
  if (!NAME.test(textIn(value['name'])))
    throw new TypeError('`name` of the policy: expected 1 to 64 letters, digits, `-` and `_`');
  const wrong = HOOKS.find((hook) => value[hook] !== undefined && typeof value[hook] !== 'function');
  if (wrong !== undefined) throw new TypeError(`\`${wrong}\` of the policy: expected a function`);
  if (HOOKS.every((hook) => value[hook] === undefined))
    throw new TypeError(`the policy has none of the functions ${HOOKS.join(', ')}, so it does nothing`);
  if (value['options'] !== undefined && validateOf(value['options']) === undefined)
    throw new TypeError(
      '`options` of the policy: expected a schema with Standard Schema, such as `z.object({ … })`',
    );
}

type Validate = (value: unknown) => unknown;

/** Schemas of ArkType are functions. */
function validateOf(schema: unknown): Validate | undefined {
  const standard: unknown = Reflect.get(Object(schema), '~standard');
  const validate: unknown = membersOf(standard)['validate'];
  return typeof validate === 'function' ? (value) => Reflect.apply(validate, standard, [value]) : undefined;
}

/** What a schema finds wrong with options. `path` is relative to them. */
export interface OptionsProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** Options as the schema of a policy returns them, or what is wrong with them. */
export async function checkOptions(
  { name, options: schema }: PolicyDefinition,
  given: unknown,
): Promise<{ readonly value: unknown } | { readonly problems: readonly OptionsProblem[] }> {
  const validate = validateOf(schema);
  if (validate === undefined)
    return given === undefined
      ? { value: undefined }
      : { problems: [{ path: [], message: `the policy \`${name}\` takes no options` }] };
  // Without options, the schema says which are missing.
  const result = membersOf(await validate(given ?? {}));
  if (result['issues'] === undefined) return { value: result['value'] };
  const problems = elementsOf(result['issues']).map((issue) => {
    const { message, path } = membersOf(issue);
    return {
      path: elementsOf(path).flatMap(segmentOf),
      message: textIn(message) || 'the value is not valid',
    };
  });
  return { problems: problems.length > 0 ? problems : [{ path: [], message: 'the options are not valid' }] };
}

function segmentOf(segment: unknown): string | number | [] {
  const key = isRecord(segment) ? segment['key'] : segment;
  return typeof key === 'string' || typeof key === 'number' ? key : [];
}
