import { elementsOf, isRecord, membersOf, shownValue, stringIn } from '../../../core/foreign.ts';
import { matchesModel } from '../../../server/llm/models/model-patterns.ts';
import type { Imported } from '../imported.ts';
import { type Deployment, SHARES } from './deployments.ts';
import type { Lost } from './lost.ts';

type Entry = Readonly<Record<string, unknown>>;
type Names = ReadonlyMap<string, readonly string[]>;

/** How the groups of `model_list` refer to each other. */
export interface Links {
  /** `fallbacks`, by name; `*` for those of every other group. */
  readonly fallbacks: Names;
  /** `model_group_alias`: other names of groups. */
  readonly aliases: ReadonlyMap<string, string>;
  /** `health` of models that have alternatives. */
  readonly health: Entry | undefined;
  /** Whether deployments are chosen by weight; otherwise by latency. */
  readonly isWeighted: boolean;
}

interface Target {
  readonly model: string;
  readonly priority: number;
  readonly weight?: number;
}

/**
 * Adds the entries of `model_list`. A name that several entries share, or that has fallbacks or is an alias, becomes a
 * virtual model with `failover`; its entries become internal models.
 */
export function addGroups(
  deployments: readonly Deployment[],
  links: Links,
  lost: Lost,
  source: string,
  imported: Imported,
): void {
  const groups = Map.groupBy(deployments, ({ name }) => name);
  const isPattern = (name: string): boolean => name.includes('*');
  const patterns = [...groups.keys()].filter(isPattern);
  const isKnown = (name: string): boolean =>
    groups.has(name) || patterns.some((pattern) => matchesModel(pattern, name));
  const nextOf = (name: string): readonly string[] =>
    isPattern(name) ? [] : chainOf(name, links.fallbacks).filter((each) => isKnown(each) && !isPattern(each));
  const isVirtual = (name: string): boolean =>
    !isPattern(name) && ((groups.get(name)?.length ?? 0) > 1 || nextOf(name).length > 0);
  const modelName = (name: string, index: number): string =>
    isVirtual(name) ? `${name}#${index + 1}` : name;
  const levelsOf = (name: string): Omit<Target, 'priority'>[][] =>
    levels(groups.get(name) ?? [], links.isWeighted, (index) => modelName(name, index), name);
  const targetsOf = (name: string): Target[] =>
    [name, ...nextOf(name)]
      .flatMap(levelsOf)
      .flatMap((level, priority) => level.map((target) => ({ ...target, priority })));
  for (const [name, members] of groups) {
    const kept = isPattern(name) ? members.slice(0, 1) : members;
    if (kept.length < members.length)
      lost.add(`${members.length - 1} more of ${name}`, 'a pattern is one model');
    for (const [index, { model }] of kept.entries())
      imported.models.push({
        source,
        value: {
          name: modelName(name, index),
          ...(isVirtual(name) && { visibility: 'internal' }),
          ...model,
          ...(links.health !== undefined && { health: links.health }),
        },
      });
  }
  const virtual = new Map<string, readonly Target[]>();
  const known = [...groups.keys(), ...links.fallbacks.keys()];
  for (const name of known) if (isKnown(name) && isVirtual(name)) virtual.set(name, targetsOf(name));
  for (const [alias, name] of links.aliases) {
    if (groups.has(alias)) lost.add(`model_group_alias.${alias}`, 'a model has this name');
    else if (isKnown(name)) virtual.set(alias, virtual.get(name) ?? targetsOf(name));
    else lost.add(`model_group_alias.${alias}`, `no model ${name}`);
  }
  for (const [name, targets] of virtual)
    imported.virtualModels.push({ source, value: { name, routing: { failover: { targets } } } });
  reportUnknown(links.fallbacks, isKnown, isPattern, lost);
  if (links.fallbacks.has('*') && patterns.length > 0)
    lost.add('default_fallbacks', 'names that match a pattern have none', { owner: patterns.join(', ') });
}

/** What is tried after a model, in order: each fallback, followed by its own. */
function chainOf(name: string, fallbacks: Names): string[] {
  const found = new Set<string>();
  const visit = (each: string): void => {
    for (const next of fallbacks.get(each) ?? fallbacks.get('*') ?? [])
      if (next !== name && !found.has(next)) {
        found.add(next);
        visit(next);
      }
  };
  visit(name);
  return [...found];
}

/** The deployments of a group by `order`; a name that only a pattern matches is its own target. */
function levels(
  members: readonly Deployment[],
  isWeighted: boolean,
  nameOf: (index: number) => string,
  name: string,
): Omit<Target, 'priority'>[][] {
  if (members.length === 0) return [[{ model: name }]];
  const share = SHARES.find((key) => members.some(({ shares }) => (shares[key] ?? 0) > 0));
  const given = members.map(({ shares }) => (share === undefined ? 1 : (shares[share] ?? 0)));
  const weights = isWeighted ? wholeNumbers(given) : undefined;
  const all = members.map(({ order }, index) => ({ order, model: nameOf(index), weight: weights?.[index] }));
  const orders = [...new Set(all.map(({ order }) => order))].sort((a, b) => a - b);
  return orders.map((wanted) => {
    const level = all.filter(({ order }) => order === wanted);
    return level.map(({ model, weight }) =>
      weight === undefined || level.length === 1 ? { model } : { model, weight },
    );
  });
}

/** Weights such as 0.9 and 0.1 in the same proportion. */
function wholeNumbers(weights: readonly number[]): readonly number[] {
  if (weights.every((weight) => Number.isInteger(weight) && weight >= 0)) return weights;
  const largest = Math.max(...weights);
  return weights.map((weight) => (weight <= 0 ? 0 : Math.max(1, Math.round((weight / largest) * 1000))));
}

function reportUnknown(
  fallbacks: Names,
  isKnown: (name: string) => boolean,
  isPattern: (name: string) => boolean,
  lost: Lost,
): void {
  for (const [name, others] of fallbacks) {
    const unknown = [...(name === '*' ? [] : [name]), ...others].filter(
      (each) => !isKnown(each) || isPattern(each),
    );
    if (unknown.length > 0) lost.add(`fallbacks.${name}`, `no model of its own: ${unknown.join(', ')}`);
  }
}

/** `fallbacks: [{a: [b, c]}]` and `default_fallbacks: [d]` by name. */
export function fallbacksOf(list: unknown, ofAll: unknown, lost: Lost): Names {
  const found = new Map<string, readonly string[]>();
  const others = elementsOf(ofAll).map(shownValue);
  if (others.length > 0) found.set('*', others);
  for (const each of elementsOf(list)) {
    if (!isRecord(each)) lost.add('fallbacks', `not a map of a model to others: ${shownValue(each)}`);
    for (const [name, next] of Object.entries(membersOf(each)))
      found.set(name, elementsOf(next).map(modelIn));
  }
  return found;
}

/** A fallback is a name, or an object that also changes the request. */
const modelIn = (value: unknown): string => stringIn(membersOf(value)['model']) ?? shownValue(value);

/** `model_group_alias: {a: b, c: {model: d, hidden: true}}`. */
export const aliasesOf = (value: unknown): ReadonlyMap<string, string> =>
  new Map(Object.entries(membersOf(value)).map(([alias, to]) => [alias, modelIn(to)]));
