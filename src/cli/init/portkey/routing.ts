import { elementsOf, membersOf, stringIn } from '../../../core/foreign.ts';
import { NotImported } from '../imported.ts';
import { wholeNumbers } from '../litellm/groups.ts';
import { literal } from '../values.ts';
import { expressionOf } from './conditions.ts';
import type { Lost } from './lost.ts';
import type { Group, Leaf, Node } from './tree.ts';

type Entry = Readonly<Record<string, unknown>>;
type Codes = Group['codes'];

/** A target with its share of the calls of its level. */
interface Share {
  readonly leaf: Leaf;
  readonly share: number;
  /** Statuses after which the next level is used, if there is a fallback. */
  readonly after?: { readonly codes: Codes };
}

/** How a call finds its target. */
export interface Routing {
  readonly leaves: readonly Leaf[];
  /** `unhealthyExpression` of targets that others follow. */
  readonly failures: ReadonlyMap<Leaf, string>;
  /** `routing` of a virtual model with these names of models; undefined for a target alone. */
  readonly write: (nameOf: (leaf: Leaf) => string | undefined) => Entry | undefined;
}

export function routingOf(root: Node, lost: Lost): Routing {
  const top = withoutSingle(root, lost);
  if (top.mode === 'leaf') return { leaves: [top], failures: new Map(), write: () => undefined };
  return top.mode === 'conditional' ? conditional(top, lost) : byLevels(levelsOf(top, undefined, lost), lost);
}

function withoutSingle(node: Node, lost: Lost): Node {
  if (node.mode !== 'single') return node;
  const [first, ...others] = node.children;
  if (others.length > 0)
    lost.add(
      'strategy.mode: single',
      'the first target gets all calls, as in Portkey; the others are left out',
      {
        owner: node.place,
      },
    );
  return first === undefined ? node : withoutSingle(first, lost);
}

/** Targets in the order in which they are tried. */
function levelsOf(node: Node, after: Share['after'], lost: Lost): Share[][] {
  switch (node.mode) {
    case 'leaf':
      return [[{ leaf: node, share: 1, ...(after !== undefined && { after }) }]];
    case 'single':
      return levelsOf(withoutSingle(node, lost), after, lost);
    case 'conditional': {
      lost.add('strategy.mode: conditional', 'not inside of another strategy: its first target is used', {
        owner: node.place,
      });
      const [first] = node.children;
      return first === undefined ? [] : levelsOf(first, after, lost);
    }
    case 'fallback': {
      const own = { codes: node.codes };
      return node.children.flatMap((child, index) =>
        levelsOf(child, index === node.children.length - 1 ? (after ?? own) : own, lost),
      );
    }
    case 'loadbalance': {
      const all = node.children.map((child) => ({
        weight: child.weight,
        levels: levelsOf(child, after, lost),
      }));
      const depth = Math.max(0, ...all.map(({ levels }) => levels.length));
      if (depth > 1)
        lost.add(
          'strategy.mode: loadbalance',
          'after a failure, the next targets of all branches share the calls',
          {
            owner: node.place,
          },
        );
      return Array.from({ length: depth }, (_, index) =>
        all.flatMap(({ weight, levels }) => {
          const level = levels[index] ?? [];
          const sum = level.reduce((total, { share }) => total + share, 0);
          return level.map((each) => ({ ...each, share: sum > 0 ? (weight * each.share) / sum : 0 }));
        }),
      );
    }
  }
}

function byLevels(levels: readonly (readonly Share[])[], lost: Lost): Routing {
  const all = levels.flat();
  const leaves = all.map(({ leaf }) => leaf);
  if (levels.length === 1)
    return {
      leaves,
      failures: new Map(),
      write: (nameOf) => {
        const targets = weighted(levels[0] ?? [], nameOf);
        return targets.length === 0 ? undefined : { weighted: { targets } };
      },
    };
  if (levels.some(({ length }) => length > 1))
    lost.add(
      'strategy.mode: loadbalance',
      'after a failure of a target, the others of its group are tried before the next',
    );
  if (all.some(({ after }) => after?.codes !== undefined && !after.codes.includes(408)))
    lost.add('strategy.on_status_codes', 'after no answer, or none in time, the next target is tried, too');
  return {
    leaves,
    failures: new Map(all.map(({ leaf, after }) => [leaf, failureOf(after?.codes)])),
    write: (nameOf) => {
      const targets = levels.flatMap((level, priority) => {
        const named = weighted(level, nameOf);
        return named.map(({ model, weight }) => ({ model, priority, ...(named.length > 1 && { weight }) }));
      });
      return targets.length === 0 ? undefined : { failover: { targets } };
    },
  };
}

const failureOf = (codes: Codes): string =>
  codes === undefined ? 'response.code >= 300' : `response.code in [${codes.join(', ')}]`;

/** Targets of one level that have names, with weights in whole numbers. */
function weighted(
  level: readonly Share[],
  nameOf: (leaf: Leaf) => string | undefined,
): { model: string; weight: number }[] {
  const named = level.flatMap(({ leaf, share }) => {
    const model = nameOf(leaf);
    return model === undefined ? [] : [{ model, share }];
  });
  const weights = wholeNumbers(named.map(({ share }) => share));
  return named.map(({ model }, index) => ({ model, weight: weights[index] ?? 0 }));
}

function conditional({ children, strategy, place }: Group, lost: Lost): Routing {
  const leafOf = (name: unknown): Leaf | undefined => {
    const child = children.find((each) => each.name === stringIn(name));
    if (child === undefined) {
      lost.add('strategy.conditions', `there is no target \`${stringIn(name) ?? ''}\``, { owner: place });
      return undefined;
    }
    if (child.mode === 'leaf') return child;
    const leaf = levelsOf(child, undefined, lost)[0]?.[0]?.leaf;
    if (child.mode !== 'single' && child.mode !== 'conditional')
      lost.add(`strategy.mode: ${child.mode}`, 'not behind a condition: its first target is used', {
        owner: child.place,
      });
    return leaf;
  };
  const cases = elementsOf(strategy['conditions']).flatMap((each, index) => {
    const { query, then } = membersOf(each);
    try {
      const when = literal(expressionOf(query));
      const leaf = leafOf(then);
      return leaf === undefined ? [] : [{ leaf, when }];
    } catch (error) {
      if (!(error instanceof NotImported)) throw error;
      lost.add(`strategy.conditions[${index}]`, error.message, { owner: place });
      return [];
    }
  });
  const other = strategy['default'] === undefined ? undefined : leafOf(strategy['default']);
  const all = [...cases, ...(other === undefined ? [] : [{ leaf: other, when: undefined }])];
  return {
    leaves: [...new Set(all.map(({ leaf }) => leaf))],
    failures: new Map(),
    write: (nameOf) => {
      const targets = all.flatMap(({ leaf, when }) => {
        const model = nameOf(leaf);
        return model === undefined ? [] : [{ model, ...(when !== undefined && { when }) }];
      });
      return targets.length === 0 ? undefined : { conditional: { targets } };
    },
  };
}
