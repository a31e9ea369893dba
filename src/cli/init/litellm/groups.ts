import { elementsOf, isRecord, membersOf, shownValue, stringIn } from '../../../core/foreign.ts';
import { bySpecificity, matchesModel } from '../../../server/llm/models/model-patterns.ts';
import type { Imported } from '../imported.ts';
import { type Deployment, SHARES } from './deployments.ts';
import type { Lost } from './lost.ts';
import { PROVIDERS } from './providers.ts';

type Entry = Readonly<Record<string, unknown>>;
type Names = ReadonlyMap<string, readonly string[]>;

/** How the groups of `model_list` refer to each other. */
export interface Links {
  /** `fallbacks`, by name; `*` for those of every other group. */
  readonly fallbacks: Names;
  /** `model_group_alias`: other names of groups. */
  readonly aliases: ReadonlyMap<string, string>;
  /** `health` of models that have alternatives. */
  readonly health: Entry;
  /** `cache` of all models. */
  readonly cache: Entry | undefined;
  readonly choice: Choice;
}

/** How a deployment of a group is chosen. The cheapest one that works is the first of an order. */
export type Choice = 'weight' | 'latency' | 'cost';

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
  const groups = new Groups(deployments, links);
  const virtual = groups.virtualModels(lost);
  const alternatives = [...virtual.values()].filter(({ length }) => length > 1).flat();
  const hasNext = new Set(alternatives.map(({ model }) => groups.entryOf(model)));
  for (const [name, members] of groups.all) {
    const kept = isPattern(name) ? members.slice(0, 1) : members;
    if (kept.length < members.length)
      lost.add(`${members.length - 1} more of ${name}`, 'a pattern is one model');
    for (const [index, { model }] of kept.entries()) {
      const modelName = groups.modelName(name, index);
      const value = {
        name: modelName,
        ...(groups.isVirtual(name) && { visibility: 'internal' }),
        ...model,
        ...(links.cache !== undefined && { cache: links.cache }),
        ...(hasNext.has(modelName) && { health: links.health }),
      };
      imported.models.push({ source, value });
    }
  }
  for (const [name, targets] of virtual)
    imported.virtualModels.push({ source, value: { name, routing: { failover: { targets } } } });
  reportFallbacks(links.fallbacks, groups, lost);
  reportGuessedNames(groups, lost);
}

const isPattern = (name: string): boolean => name.includes('*');

/** Deployments by the name that clients request, and what each name leads to. */
class Groups {
  readonly all: ReadonlyMap<string, readonly Deployment[]>;
  /** The most specific first. */
  readonly patterns: readonly string[];
  readonly #links: Links;

  constructor(deployments: readonly Deployment[], links: Links) {
    this.all = Map.groupBy(deployments, ({ name }) => name);
    this.#links = links;
    const names = [...this.all.keys()].filter(isPattern).map((name) => ({ name }));
    this.patterns = bySpecificity(names).map(({ name }) => name);
  }

  isKnown(name: string): boolean {
    return this.all.has(name) || this.#patternOf(name) !== undefined;
  }

  isVirtual(name: string): boolean {
    if (isPattern(name)) return false;
    return (this.all.get(name)?.length ?? 0) > 1 || this.#nextOf(name).length > 0;
  }

  modelName(name: string, index: number): string {
    return this.isVirtual(name) ? `${name}#${index + 1}` : name;
  }

  /** The name of the entry of `models` for the target of a virtual model. */
  entryOf(target: string): string {
    const isDeployment = this.all.has(target) || this.all.has(target.replace(/#\d+$/, ''));
    return isDeployment ? target : (this.#patternOf(target) ?? target);
  }

  virtualModels(lost: Lost): ReadonlyMap<string, readonly Target[]> {
    const { fallbacks, aliases } = this.#links;
    const found = new Map<string, readonly Target[]>();
    for (const name of [...this.all.keys(), ...fallbacks.keys()])
      if (this.isKnown(name) && this.isVirtual(name)) found.set(name, this.#targetsOf(name));
    for (const [alias, name] of aliases) {
      if (this.all.has(alias)) lost.add(`model_group_alias.${alias}`, 'a model has this name');
      else if (this.isKnown(name)) found.set(alias, this.#targetsOf(name));
      else lost.add(`model_group_alias.${alias}`, `no model ${name}`);
    }
    return found;
  }

  #patternOf(name: string): string | undefined {
    return this.patterns.find((pattern) => matchesModel(pattern, name));
  }

  #nextOf(name: string): readonly string[] {
    return chainOf(name, this.#links.fallbacks).filter((each) => this.isKnown(each) && !isPattern(each));
  }

  #targetsOf(name: string): Target[] {
    return [name, ...this.#nextOf(name)]
      .flatMap((each) =>
        levels(this.all.get(each) ?? [], this.#links.choice, (index) => this.modelName(each, index), each),
      )
      .flatMap((level, priority) => level.map((target) => ({ ...target, priority })));
  }
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

/** The deployments of a group by `order` and, if they are chosen by it, their cost; a name that only a pattern matches is its own target. */
function levels(
  members: readonly Deployment[],
  choice: Choice,
  nameOf: (index: number) => string,
  name: string,
): Omit<Target, 'priority'>[][] {
  if (members.length === 0) return [[{ model: name }]];
  const share = SHARES.find((key) => members.some(({ shares }) => (shares[key] ?? 0) > 0));
  const given = members.map(({ shares }) => (share === undefined ? 1 : (shares[share] ?? 0)));
  const weights = choice === 'weight' ? wholeNumbers(given) : undefined;
  const all = members.map(({ order, cost }, index) => ({
    place: [order, choice === 'cost' ? cost() : 0] as const,
    model: nameOf(index),
    weight: weights?.[index],
  }));
  const byPlace = Map.groupBy(all, ({ place }) => place.join(' '));
  const ordered = [...byPlace.values()].sort(([one], [other]) => compare(one?.place, other?.place));
  return ordered.map((level) =>
    level.map(({ model, weight }) =>
      weight === undefined || level.length === 1 ? { model } : { model, weight },
    ),
  );
}

/** By the first number that differs. Infinite ones are equal. */
function compare(one: readonly number[] = [], other: readonly number[] = []): number {
  for (const [index, value] of one.entries()) {
    const otherValue = other[index] ?? 0;
    if (value !== otherValue) return value < otherValue ? -1 : 1;
  }
  return 0;
}

/** Weights such as 0.9 and 0.1 in the same proportion. */
export function wholeNumbers(weights: readonly number[]): readonly number[] {
  if (weights.every((weight) => Number.isInteger(weight) && weight >= 0)) return weights;
  const largest = Math.max(...weights);
  return weights.map((weight) => (weight <= 0 ? 0 : Math.max(1, Math.round((weight / largest) * 1000))));
}

/** LiteLLM knows the providers of many models, and then finds `openai/*` for `gpt-5`. */
function reportGuessedNames({ patterns }: Groups, lost: Lost): void {
  if (patterns.includes('*')) return;
  for (const pattern of patterns) {
    const [, provider] = /^([^/]+)\/\*$/.exec(pattern) ?? [];
    if (provider !== undefined && Object.hasOwn(PROVIDERS, provider))
      lost.add(`names without ${provider}/`, 'LiteLLM guesses the provider of models that it knows', {
        owner: pattern,
      });
  }
}

function reportFallbacks(fallbacks: Names, groups: Groups, lost: Lost): void {
  if (fallbacks.size > 0)
    lost.add('fallbacks', 'no other model is tried after a refusal such as 400, 403 and 413');
  if (fallbacks.has('*') && groups.patterns.length > 0)
    lost.add('default_fallbacks', 'names that match a pattern have none', {
      owner: groups.patterns.join(', '),
    });
  for (const [name, others] of fallbacks) {
    const unknown = [...(name === '*' ? [] : [name]), ...others].filter(
      (each) => isPattern(each) || !groups.isKnown(each),
    );
    if (unknown.length > 0)
      lost.add(`fallbacks.${name}`, `not imported as a model: ${unknown.join(', ')}`, { isWarning: true });
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
