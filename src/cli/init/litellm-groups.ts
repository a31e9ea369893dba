import { elementsOf, membersOf, shownValue } from '../../core/foreign.ts';
import type { Imported, ImportedEntry } from './imported.ts';

/** One entry of `model_list`: the name that clients request, which several entries may have. */
export interface Deployment {
  readonly name: string;
  readonly weight: number;
  readonly model: Omit<ImportedEntry['value'], 'name'>;
}

/**
 * Adds the entries of `model_list`. Entries that share a name, and those with fallbacks, become internal models, and a
 * virtual model has their name: `weighted`, or `failover` with the fallbacks in their order.
 */
export function addDeployments(
  deployments: readonly Deployment[],
  fallbacks: unknown,
  source: string,
  imported: Imported,
): void {
  const groups = new Map<string, Deployment[]>();
  for (const each of deployments) groups.set(each.name, [...(groups.get(each.name) ?? []), each]);
  const others = fallbacksOf(fallbacks, groups, source, imported);
  const isVirtual = (name: string): boolean =>
    !name.includes('*') && ((groups.get(name)?.length ?? 0) > 1 || others.has(name));
  const modelsOf = (name: string): string[] =>
    (groups.get(name) ?? []).map((_, index) => (isVirtual(name) ? `${name}#${index + 1}` : name));
  for (const [name, members] of groups) {
    const names = modelsOf(name);
    for (const [index, { model }] of members.entries()) {
      if (index > 0 && !isVirtual(name))
        imported.leftOut.push({ what: `another ${name} in ${source}`, reason: 'a pattern is one model' });
      else
        imported.models.push({
          source,
          value: {
            name: names[index] ?? name,
            ...(isVirtual(name) && { visibility: 'internal' }),
            ...model,
          },
        });
    }
    if (!isVirtual(name)) continue;
    const next = others.get(name);
    const routing =
      next === undefined
        ? {
            weighted: {
              targets: members.map(({ weight }, index) => weighted(names[index] ?? name, weight)),
            },
          }
        : {
            failover: {
              targets: [name, ...next].flatMap((each, priority) =>
                modelsOf(each).map((model) => ({ model, priority })),
              ),
            },
          };
    imported.virtualModels.push({ source, value: { name, routing } });
  }
}

const weighted = (model: string, weight: number): object => (weight === 1 ? { model } : { model, weight });

/** `fallbacks: [{a: [b, c]}]` by name, without those of unknown models. */
function fallbacksOf(
  list: unknown,
  groups: ReadonlyMap<string, unknown>,
  source: string,
  { leftOut }: Imported,
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const [name, others] of elementsOf(list).flatMap((each) => Object.entries(membersOf(each)))) {
    const names = elementsOf(others).map(shownValue);
    const unknown = [name, ...names].filter((each) => !groups.has(each) || each.includes('*'));
    if (unknown.length > 0)
      leftOut.push({
        what: `fallbacks of ${name} in ${source}`,
        reason: `no model of its own: ${unknown.join(', ')}`,
      });
    const known = names.filter((each) => !unknown.includes(each));
    if (!unknown.includes(name) && known.length > 0) found.set(name, known);
  }
  return found;
}
