import { elementsOf, isRecord, membersOf, shownValue, stringIn, textIn } from '../../../core/foreign.ts';
import { isPattern } from '../patterns.ts';
import { literal } from '../values.ts';
import type { Lost } from './lost.ts';

type Entry = Readonly<Record<string, unknown>>;

/** The status of Portkey for a call that a guardrail refuses. */
const REFUSED = 446;
/** Members of an entry that are not checks. */
const SETTINGS = [
  ...['deny', 'on_fail', 'on_success', 'async', 'id', 'type', 'guardrail_version_id', 'sequential', 'name'],
];
const BY_HAND = 'no counterpart, or set it as `guardrails` of the model (docs/guardrails.md)';

/** `guardrails` of a model; undefined if no check of the target can be one. */
export function guardrailsOf(settings: Entry, owner: string, lost: Lost): Entry | undefined {
  const side = (...keys: readonly string[]): Entry[] =>
    keys.flatMap((key) =>
      elementsOf(settings[key]).flatMap((entry) => guardrailOf(entry, { key, owner, lost })),
    );
  const request = side('before_request_hooks', 'input_guardrails', 'default_input_guardrails');
  const response = side('after_request_hooks', 'output_guardrails', 'default_output_guardrails');
  if (request.length + response.length === 0) return undefined;
  return { ...(request.length > 0 && { request }), ...(response.length > 0 && { response }) };
}

interface At {
  readonly key: string;
  readonly owner: string;
  readonly lost: Lost;
}

function guardrailOf(entry: unknown, at: At): Entry[] {
  const { key, owner, lost } = at;
  const warn = (what: string, reason: string): Entry[] => {
    lost.add(what, reason, { owner, isWarning: true });
    return [];
  };
  if (!isRecord(entry))
    return warn(`${key}: ${shownValue(entry)}`, 'its checks are kept by Portkey: set them as `guardrails`');
  const checks = checksOf(entry);
  if (entry['type'] === 'mutator')
    return warn(`${key}: mutator`, 'texts are changed by guardrails that mask, or by a webhook');
  if (entry['deny'] !== true || entry['async'] === true)
    return checks.flatMap(({ id }) =>
      warn(`${key}: ${id}`, 'it refuses no call (`deny`, `async`), and its result is not recorded here'),
    );
  lost.addRest(entry, [...SETTINGS, ...(Array.isArray(entry['checks']) ? ['checks'] : Object.keys(entry))], {
    prefix: `${key}.`,
    owner,
  });
  return checks.flatMap(({ id, parameters }) => {
    const patterns = patternsOf(id, parameters);
    if (typeof patterns === 'string') return warn(`${key}: ${id}`, patterns);
    const rules = patterns.map((pattern) => ({ pattern: literal(pattern) }));
    return [{ regex: { action: 'reject', rules }, rejection: { status: REFUSED } }];
  });
}

interface Check {
  readonly id: string;
  readonly parameters: Entry;
}

/** The checks of an entry, in its longer and its shorter form. */
function checksOf(entry: Entry): Check[] {
  const all = Array.isArray(entry['checks'])
    ? entry['checks'].map((check) => {
        const { id, parameters, is_enabled: isEnabled } = membersOf(check);
        return { id: textIn(id), parameters: membersOf(parameters), isEnabled };
      })
    : Object.entries(entry)
        .filter(([key]) => !SETTINGS.includes(key))
        .map(([key, value]) => {
          const { id, is_enabled: isEnabled, ...parameters } = membersOf(value);
          return { id: stringIn(id) ?? key, parameters, isEnabled };
        });
  return all
    .filter(({ isEnabled }) => isEnabled !== false)
    .map(({ id, parameters }) => ({ id: id.includes('.') ? id : `default.${id}`, parameters }));
}

/** Patterns that no text may match; otherwise why there are none. */
function patternsOf(id: string, parameters: Entry): string[] | string {
  if (id === 'default.regexMatch') {
    const rule = textIn(parameters['rule']);
    if (parameters['not'] !== true)
      return 'texts that must not match are refused, not texts of which one has to match';
    return isPattern(rule) ? [rule] : `\`${rule}\` is not a regular expression that RE2 supports`;
  }
  if (id === 'default.contains') {
    const words = elementsOf(parameters['words']).filter((word) => typeof word === 'string' && word !== '');
    if (parameters['operator'] !== 'none' || words.length === 0)
      return 'texts with certain words are refused (`none`), not texts without them';
    return words.map((word) => textIn(word).replaceAll(/[\\^$.|?*+()[\]{}]/g, '\\$&'));
  }
  return BY_HAND;
}
