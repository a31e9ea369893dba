import { elementsOf, membersOf, shownValue, stringIn } from '../../../core/foreign.ts';
import type { Variables } from '../variables.ts';
import type { Unread, Watched } from '../watched.ts';
import type { Lost } from './lost.ts';
import { CALLBACKS_THAT_CHECK, hasCap, isCap, isMisleading, OTHER_TYPE, reasonFor } from './reasons.ts';
import { variableIn } from './references.ts';

type Entry = Readonly<Record<string, unknown>>;

/** A line for each member of the file that the import has not asked for, and for each variable that it could not use. */
export function reportUnread(file: Entry, watched: Watched, variables: Variables, lost: Lost): void {
  const isCovered = (path: Unread['path']): boolean => lost.covered.has(path.join('.'));
  const unread = watched.unread(file, isCovered, NESTED);
  for (const each of unread) report(each, file, lost);
  for (const { path } of unread) lost.covered.add(path.join('.'));
  const unused = Object.keys(membersOf(file['environment_variables'])).filter(
    (name) => !variables.isNeeded(name),
  );
  if (unused.length > 0) lost.add(`environment_variables: ${unused.join(', ')}`, UNUSED);
  for (const { path, value } of textsIn(file, [], isCovered, new Set())) {
    const name = variableIn(value);
    if (name === undefined || variables.isNeeded(name)) continue;
    const { key, owner } = placeOf(path, file);
    lost.add(key, `\`${name}\`: no variable can stand here: write the value by hand`, { owner });
  }
}

/** Members that are lists or objects wherever they are, of those that the import reads. */
const NESTED: ReadonlySet<string> = new Set([
  ...['model_list', 'credential_list', 'environment_variables', 'guardrails', 'mcp_servers'],
  ...['general_settings', 'litellm_settings', 'router_settings', 'litellm_params', 'model_info'],
  ...['credential_values', 'headers', 'extra_headers', 'extra_body', 'patterns', 'blocked_words'],
  ...['cache_params', 'retry_policy', 'model_group_alias', 'static_headers', 'env', 'args'],
]);

const UNUSED =
  'nothing that is imported refers to them: those that the gateway or a server reads belong into `gateway.env`';

function report({ path, value, isMistyped }: Unread, file: Entry, lost: Lost): void {
  const name = String(path.at(-1));
  const why = reasonFor(path, value, isReplaced(path, file));
  if (value === null) return;
  const { key, owner } = placeOf(path, file);
  if (value === false && why.isKnown) {
    lost.add(key, 'switched off', { owner, isWarning: false });
    return;
  }
  const callbacks = /callbacks?$/.test(name) ? (Array.isArray(value) ? value : [value]).map(shownValue) : [];
  const checks = callbacks.filter((each) => CALLBACKS_THAT_CHECK.test(each));
  for (const each of checks)
    lost.add(`${key}: ${each}`, 'guardrails are set as `llm.guardrails`', { isWarning: true });
  if (checks.length > 0 && checks.length === callbacks.length) return;
  lost.add(key, isMistyped ? OTHER_TYPE : why.reason, {
    owner,
    isWarning: isCap(name) || hasCap(value) || isMisleading(path),
  });
}

/** Whether LiteLLM itself reads the same member of another section. */
const isReplaced = ([section, key]: Unread['path'], file: Entry): boolean =>
  section === 'litellm_settings' && membersOf(file['router_settings'])[String(key)] !== undefined;

/** Lists and maps of the file whose entries have names, and the member with the name in a list. */
const NAMED: Readonly<Record<string, string | undefined>> = {
  model_list: 'model_name',
  credential_list: 'credential_name',
  guardrails: 'guardrail_name',
};

/** A member as people look for it: `model_info.id` of a model, or `router_settings.timeout`. */
export function placeOf(path: Unread['path'], file: Entry): { key: string; owner: string } {
  const [section = '', entry = '', ...inner] = path;
  const nameKey = NAMED[section];
  if (inner.length === 0 || (nameKey === undefined && section !== 'mcp_servers'))
    return { key: joined(path), owner: '' };
  const each = elementsOf(file[section])[Number(entry)];
  const owner =
    nameKey === undefined ? String(entry) : (stringIn(membersOf(each)[nameKey]) ?? `${section}[${entry}]`);
  const own = inner[0] === 'litellm_params' && inner.length > 1 ? inner.slice(1) : inner;
  return { key: joined(own), owner };
}

const joined = (path: Unread['path']): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '');

function* textsIn(
  value: unknown,
  path: Unread['path'],
  isCovered: (path: Unread['path']) => boolean,
  visited: Set<object>,
): Generator<{ path: Unread['path']; value: string }> {
  if (isCovered(path)) return;
  if (typeof value === 'string') yield { path, value };
  if (typeof value !== 'object' || value === null || visited.has(value)) return;
  visited.add(value);
  const entries = Array.isArray(value) ? value.entries() : Object.entries(value);
  for (const [key, each] of entries) yield* textsIn(each, [...path, key], isCovered, visited);
}
