export const DIRECTIONS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
} as const;
export type Arrow = keyof typeof DIRECTIONS;

/**
 * The nearest node in a direction: preferably one that the current node has a relation with, otherwise any node.
 *
 * @param from index of the current node
 */
export function nearest(
  positions: Float32Array,
  neighbours: readonly number[],
  from: number,
  arrow: Arrow,
): number | undefined {
  const all = positions.length / 2;
  return best(positions, neighbours, from, arrow) ?? best(positions, Array(all).keys(), from, arrow);
}

function best(
  positions: Float32Array,
  candidates: Iterable<number>,
  from: number,
  arrow: Arrow,
): number | undefined {
  const [right, down] = DIRECTIONS[arrow];
  let found: number | undefined;
  let least = Infinity;
  for (const index of candidates) {
    if (index === from) continue;
    const x = (positions[2 * index] as number) - (positions[2 * from] as number);
    const y = (positions[2 * index + 1] as number) - (positions[2 * from + 1] as number);
    const ahead = x * right + y * down;
    const aside = Math.abs(x * down) + Math.abs(y * right);
    if (ahead <= 0 || aside > ahead) continue;
    // Sideways distance counts twice.
    const cost = ahead + 2 * aside;
    if (cost >= least) continue;
    least = cost;
    found = index;
  }
  return found;
}

/** The node at a point of the plane, or undefined. */
export function nodeAt(
  positions: Float32Array,
  at: { readonly x: number; readonly y: number },
  reach: number,
): number | undefined {
  let found: number | undefined;
  let least = reach * reach;
  for (let index = 0; 2 * index < positions.length; index += 1) {
    const x = (positions[2 * index] as number) - at.x;
    const y = (positions[2 * index + 1] as number) - at.y;
    const distance = x * x + y * y;
    if (distance > least) continue;
    least = distance;
    found = index;
  }
  return found;
}
