import { elementsOf, isRecord, membersOf, stringIn } from '../../../core/foreign.ts';
import { numeric } from '../values.ts';
import type { Lost } from './lost.ts';

type Entry = Readonly<Record<string, unknown>>;

/** A target that is called. */
export interface Leaf {
  readonly mode: 'leaf';
  /** Where it is in the file: `targets[0]`. */
  readonly place: string;
  readonly name: string | undefined;
  readonly weight: number;
  /** Its own members, and those that it inherits. */
  readonly settings: Entry;
}

export interface Group {
  readonly mode: 'single' | 'fallback' | 'loadbalance' | 'conditional';
  readonly place: string;
  readonly name: string | undefined;
  readonly weight: number;
  readonly children: readonly Node[];
  /** Statuses after which a fallback goes on; undefined: any but those of success. */
  readonly codes: readonly number[] | undefined;
  readonly strategy: Entry;
}

export type Node = Leaf | Group;

/** Members that a target has from the config object around it, unless it has its own. */
const INHERITED = [
  ...['retry', 'cache', 'request_timeout', 'custom_host', 'forward_headers', 'strict_open_ai_compliance'],
] as const;
const SIDES = [
  ['before_request_hooks', 'input_guardrails'],
  ['after_request_hooks', 'output_guardrails'],
] as const;
/** Checks of all targets, beside their own. */
const DEFAULTS = ['default_input_guardrails', 'default_output_guardrails'] as const;

const MODES = ['single', 'fallback', 'loadbalance', 'conditional'] as const;

/** The targets of a config object, with what they inherit. */
export function treeOf(config: Entry, lost: Lost): Node {
  return nodeOf(config, {}, '', lost);
}

function nodeOf(own: Entry, outer: Entry, place: string, lost: Lost): Node {
  const settings = inheriting(own, outer);
  const name = stringIn(own['name']);
  const weight = Math.max(0, numeric(own['weight']) ?? 1);
  const targets = elementsOf(own['targets']);
  const strategy = membersOf(own['strategy']);
  if (targets.length === 0) {
    if (own['targets'] !== undefined) lost.add('targets', 'there are none', { owner: place });
    return { mode: 'leaf', place, name, weight, settings };
  }
  const mode = MODES.find((known) => known === strategy['mode']);
  if (mode === undefined)
    lost.add('strategy.mode', 'not known: the first target gets all calls', { owner: place });
  const owner = place;
  lost.addRest(strategy, ['mode', 'on_status_codes', 'conditions', 'default'], {
    prefix: 'strategy.',
    owner,
  });
  // What a target inherits is read there.
  lost.addRest(
    own,
    [...INHERITED, ...SIDES.flat(), ...DEFAULTS, 'strategy', 'targets', 'name', 'weight', 'override_params'],
    { owner },
  );
  const children = targets.map((target, index) =>
    nodeOf(membersOf(target), settings, `${place === '' ? '' : `${place}.`}targets[${index}]`, lost),
  );
  return {
    mode: mode ?? 'single',
    ...{ place, name, weight, children, strategy },
    codes: statusesIn(strategy['on_status_codes']),
  };
}

function inheriting(own: Entry, outer: Entry): Entry {
  const inherited = INHERITED.flatMap((key) =>
    isSet(own[key]) || !isSet(outer[key]) ? [] : [[key, outer[key]]],
  );
  const sides = SIDES.flatMap((keys) =>
    keys.some((key) => isSet(own[key]))
      ? []
      : keys.flatMap((key) => (isSet(outer[key]) ? [[key, outer[key]]] : [])),
  );
  const defaults = DEFAULTS.flatMap((key) => (isSet(outer[key]) ? [[key, outer[key]]] : []));
  return {
    ...own,
    ...Object.fromEntries([...inherited, ...sides, ...defaults]),
    override_params: { ...membersOf(outer['override_params']), ...membersOf(own['override_params']) },
  };
}

const isSet = (value: unknown): boolean =>
  isRecord(value) ? Object.keys(value).length > 0 : value !== undefined && value !== null;

/** A list of statuses; undefined if there is none. */
export function statusesIn(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.flatMap((each) => {
    const code = numeric(each);
    return code !== undefined && Number.isInteger(code) && code >= 100 && code < 600 ? [code] : [];
  });
}
