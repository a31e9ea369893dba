/** The visible part of the plane: its center, and pixels per unit. */
export interface View {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

const ZOOM = { least: 0.02, most: 8 };
/** Margin around the graph for labels, in pixels. */
const MARGIN = 48;

export function toScreen({ x, y, zoom }: View, { width, height }: Size, at: Point): Point {
  return { x: (at.x - x) * zoom + width / 2, y: (at.y - y) * zoom + height / 2 };
}

export function toPlane({ x, y, zoom }: View, { width, height }: Size, at: Point): Point {
  return { x: (at.x - width / 2) / zoom + x, y: (at.y - height / 2) / zoom + y };
}

/** Zooms so that the given point keeps its position. */
export function zoomed(view: View, size: Size, at: Point, factor: number): View {
  const zoom = Math.min(ZOOM.most, Math.max(ZOOM.least, view.zoom * factor));
  const fixed = toPlane(view, size, at);
  return {
    x: fixed.x - (at.x - size.width / 2) / zoom,
    y: fixed.y - (at.y - size.height / 2) / zoom,
    zoom,
  };
}

/** Fits everything into the view; a few nodes are not enlarged beyond a maximum. */
export function fitted(positions: Float32Array, { width, height }: Size): View {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let index = 0; index < positions.length; index += 2) {
    const x = positions[index] ?? 0;
    const y = positions[index + 1] ?? 0;
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  if (left > right) return { x: 0, y: 0, zoom: 1 };
  const zoom = Math.min(
    Math.max(1, width - 2 * MARGIN) / Math.max(1, right - left),
    Math.max(1, height - 2 * MARGIN) / Math.max(1, bottom - top),
    2.5,
  );
  return { x: (left + right) / 2, y: (top + bottom) / 2, zoom: Math.max(ZOOM.least, zoom) };
}

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
    const x = (positions[2 * index] ?? 0) - (positions[2 * from] ?? 0);
    const y = (positions[2 * index + 1] ?? 0) - (positions[2 * from + 1] ?? 0);
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
    const x = (positions[2 * index] ?? 0) - at.x;
    const y = (positions[2 * index + 1] ?? 0) - at.y;
    const distance = x * x + y * y;
    if (distance > least) continue;
    least = distance;
    found = index;
  }
  return found;
}
