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
    const x = positions[index] as number;
    const y = positions[index + 1] as number;
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
