import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { grouped } from '../../kernel/routing/router.ts';

/** Whether a pattern (exact, `*`, `prefix*` or `*suffix`) matches a model name. */
export function matchesModel(pattern: string, name: string): boolean {
  if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, -1));
  if (pattern.startsWith('*')) return name.endsWith(pattern.slice(1));
  return pattern === name;
}

/** A name of models: one name, or a pattern. */
export const modelNameSchema = z
  .string()
  .min(1)
  .superRefine((name, context) => {
    const problem = patternProblem(name);
    if (problem !== undefined)
      context.addIssue({ code: 'custom', message: problem, params: { code: 'AGW0104' } });
  });

/** The error message for an invalid pattern; undefined for a valid one. */
export function patternProblem(pattern: string): string | undefined {
  const stars = pattern.split('*').length - 1;
  if (stars > 1) return `model name wildcard may only appear once: \`${pattern}\``;
  if (stars === 1 && !pattern.startsWith('*') && !pattern.endsWith('*')) {
    return `model name wildcard must be either at the beginning or the end: \`${pattern}\``;
  }
  return undefined;
}

/** Sorts models by descending specificity; ties keep the configured order. */
export function bySpecificity<M extends { readonly name: string }>(models: readonly M[]): M[] {
  return models.toSorted((a, b) => specificityOf(b.name) - specificityOf(a.name));
}

/** The specificity of a pattern: the number of its characters besides the wildcard. */
export function specificityOf(name: string): number {
  return name.replace('*', '').length;
}

/** Finds the first model whose name or pattern matches a name, among those that `accept` takes. */
export type FindModel<M> = (name: string, accept: (model: M) => boolean) => M | undefined;

/** The function that finds models in this order; names are looked up, so that only patterns are tried one after the other. */
export function findByName<M extends { readonly name: string }>(models: readonly M[]): FindModel<M> {
  const { named, patterns } = indexesByName(models);
  return (name, accept) => {
    const isAccepted = (index: number): boolean => {
      const model = models[index];
      return model !== undefined && matchesModel(model.name, name) && accept(model);
    };
    const byName = named.get(name)?.find(isAccepted) ?? models.length;
    const byPattern = patterns.find((index) => index < byName && isAccepted(index));
    return models[byPattern ?? byName];
  };
}

/** Where each name stands, and where the patterns are. */
function indexesByName(models: readonly { readonly name: string }[]): {
  readonly named: ReadonlyMap<string, readonly number[]>;
  readonly patterns: readonly number[];
} {
  const named = new Map<string, number[]>();
  const patterns: number[] = [];
  for (const [index, { name }] of models.entries()) {
    if (name.includes('*')) patterns.push(index);
    else grouped(named, name).push(index);
  }
  return { named, patterns };
}

/** The fields that decide whether an entry of `models` can be selected. */
interface Entry {
  readonly name: string;
  readonly visibility: 'public' | 'internal';
  readonly matches?: unknown;
}

/**
 * Warns about entries of `models` that are never selected, because another entry or pattern matches all of their
 * requests. Reports an error if a virtual model has the name of a public model, or a pattern that matches it: the virtual
 * one would always be used.
 */
export function reportUnreachableModels(
  models: readonly Entry[],
  virtualModels: readonly { readonly name: string }[],
  context: CompileContext,
): void {
  const shadowingOf = findShadowing(models);
  for (const [index, entry] of models.entries()) {
    const shadowing = shadowingOf(entry, index);
    if (shadowing !== undefined) reportShadowed(entry.name, index, shadowing, models, context);
  }
  for (const [index, { name }] of virtualModels.entries()) {
    const model = models.findIndex(
      (entry) => matchesModel(name, entry.name) && entry.visibility === 'public',
    );
    const shadowed = models[model]?.name;
    if (shadowed === undefined) continue;
    const { configLine } = context.at('models', model, 'name').place();
    context.at('virtualModels', index, 'name').report({
      code: 'AGW0106',
      message:
        shadowed === name
          ? `a model and a virtual model are both named \`${name}\``
          : `the virtual model \`${name}\` takes the calls of the model \`${shadowed}\``,
      label: `the model in line ${configLine} would be unreachable`,
      help: 'rename one of them, or set `visibility: internal` on the model',
    });
  }
}

/** Finds the first entry that shadows another one: it has the same name, or a pattern. */
function findShadowing(models: readonly Entry[]): (entry: Entry, index: number) => number | undefined {
  const { named, patterns } = indexesByName(models);
  return (entry, index) => {
    const isShadowing = (at: number): boolean => {
      const other = models[at];
      return other !== undefined && shadows(other, at, entry, index);
    };
    const found = [named.get(entry.name)?.find(isShadowing), patterns.find(isShadowing)];
    const [first] = found.filter((at) => at !== undefined).sort((a, b) => a - b);
    return first;
  };
}

/** Whether `other` is always selected before `entry`: it is tried earlier and matches all of its names and callers. */
function shadows(other: Entry, otherIndex: number, entry: Entry, index: number): boolean {
  if (otherIndex === index || (other.visibility === 'internal' && entry.visibility === 'public'))
    return false;
  // Requests that do not meet its conditions are passed on.
  if (other.matches !== undefined) return false;
  const ahead = specificityOf(other.name) - specificityOf(entry.name);
  return (ahead > 0 || (ahead === 0 && otherIndex < index)) && covers(other.name, entry.name);
}

/** Whether some name matches both patterns. */
export function overlaps(a: string, b: string): boolean {
  if (!a.includes('*')) return matchesModel(b, a);
  if (!b.includes('*')) return matchesModel(a, b);
  // A name with any prefix can have any suffix.
  if (a.endsWith('*') !== b.endsWith('*')) return true;
  const [x, y] = [a.replace('*', ''), b.replace('*', '')];
  return a.endsWith('*') ? x.startsWith(y) || y.startsWith(x) : x.endsWith(y) || y.endsWith(x);
}

/** Whether `outer` matches every name that `inner` matches. A star matches any text, including none. */
function covers(outer: string, inner: string): boolean {
  if (outer === inner || outer === '*') return true;
  if (!inner.includes('*')) return matchesModel(outer, inner);
  if (outer.endsWith('*')) return inner.endsWith('*') && inner.startsWith(outer.slice(0, -1));
  return outer.startsWith('*') && inner.startsWith('*') && inner.endsWith(outer.slice(1));
}

function reportShadowed(
  name: string,
  index: number,
  shadowing: number,
  models: readonly Entry[],
  context: CompileContext,
): void {
  const other = models[shadowing]?.name ?? '';
  const { configLine } = context.at('models', shadowing, 'name').place();
  const isSameName = other === name;
  context.at('models', index, 'name').report({
    code: 'AGW0303',
    message: `model \`${name}\` is unreachable: ${isSameName ? 'an earlier entry of the same name' : `\`${other}\``} matches all of its requests`,
    label: `${isSameName ? 'the earlier entry' : `\`${other}\``} is in line ${configLine}`,
    help: isSameName
      ? 'set `matches` on the earlier entry, or rename one of them; `virtualModels` share one name among several models'
      : `move \`${name}\` before \`${other}\``,
  });
}
