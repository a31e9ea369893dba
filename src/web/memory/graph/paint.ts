import { entryIn } from '../../../core/foreign.ts';
import { colorReader } from '../../shared/theme.ts';
import type { EntityType, RelationType } from '../model.ts';
import { type Size, toPlane, toScreen, type View } from './geometry.ts';
import type { GraphData, GraphEdge } from './load.ts';

/** Colors of the theme, read from the style sheet, which defines light, dark and forced colors. */
export interface Paint {
  readonly back: string;
  readonly text: string;
  readonly edge: string;
  readonly accent: string;
  readonly types: Readonly<Record<EntityType, string>>;
}

/** Each type has a shape and each relation a line style, so that color is never the only distinction. */
const SHAPES: Readonly<Record<EntityType, 'square' | 'circle' | 'triangle' | 'diamond' | 'wedge'>> = {
  workspace: 'square',
  doc_file: 'circle',
  doc_chunk: 'triangle',
  chat_message: 'diamond',
  entity: 'wedge',
};
export const DASHES: Readonly<Record<RelationType, readonly number[]>> = {
  BELONGS_TO: [],
  REFERENCES: [6, 4],
  DEPENDS_ON: [2, 3],
};
/** Relations that agents have named. */
export const OTHER_DASH: readonly number[] = [8, 3, 2, 3];

export interface Picture {
  readonly data: GraphData;
  readonly positions: Float32Array;
  readonly view: View;
  readonly size: Size;
  readonly current: number | undefined;
  readonly isMoving: boolean;
}

/**
 * Measured without a graphics card, for 2,000 relations: lines wider than a pixel take 90 ms per frame, one-pixel lines
 * in a single path 11 ms, in paths of twenty 6 ms. Therefore widths, dashes and arrows are only drawn when nothing
 * moves and fewer relations are in view; among thousands nobody could see them.
 */
const FINE_EDGES = 2_500;
const FINE_EDGES_MOVING = 200;
const COARSE_PATH = 20;
/**
 * Above this number of nodes, all are drawn as squares while they move; 5,000 other shapes take longer than a frame.
 */
const SHAPED_NODES = 2_000;
/** Minimum distance from the center of a node to its border, in pixels. */
const SEEN = 2.5;
/** Maximum number of labels; fewer when zoomed out, so that the drawing stays visible. */
const LABELS = 60;
const LABELS_AFAR = 20;
/** Below this zoom, lines get thinner. */
const AFAR = 0.6;
const LABEL_LENGTH = 32;

export function paintOf(element: Element): Paint {
  const colour = colorReader(element);
  return {
    back: colour('panel'),
    text: colour('text'),
    edge: colour('graph-edge'),
    accent: colour('accent'),
    types: {
      workspace: colour('graph-workspace'),
      doc_file: colour('graph-file'),
      doc_chunk: colour('graph-chunk'),
      chat_message: colour('graph-message'),
      entity: colour('graph-entity'),
    },
  };
}

/** Draws one frame. */
export function draw(context: CanvasRenderingContext2D, picture: Picture, paint: Paint, ratio: number): void {
  const { size, view } = picture;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = paint.back;
  context.fillRect(0, 0, size.width, size.height);
  const scale = ratio * view.zoom;
  context.setTransform(
    scale,
    0,
    0,
    scale,
    ratio * (size.width / 2 - view.x * view.zoom),
    ratio * (size.height / 2 - view.y * view.zoom),
  );
  drawEdges(context, picture, paint);
  drawNodes(context, picture, paint);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawLabels(context, picture, paint);
}

function drawEdges(context: CanvasRenderingContext2D, picture: Picture, paint: Paint): void {
  const { isMoving, current } = picture;
  const edges = edgesInSight(picture);
  if (edges.length <= (isMoving ? FINE_EDGES_MOVING : FINE_EDGES)) {
    drawFineEdges(context, picture, paint, edges);
    return;
  }
  const near: GraphEdge[] = [];
  const far: GraphEdge[] = [];
  for (const edge of edges) (edge.from === current || edge.to === current ? near : far).push(edge);
  drawCoarseEdges(context, picture, far, paint.edge);
  drawCoarseEdges(context, picture, near, paint.accent);
}

/** Relations that are not entirely beyond one side of the view. */
function edgesInSight({ data, positions, view, size }: Picture): GraphEdge[] {
  const { x: left, y: top } = toPlane(view, size, { x: 0, y: 0 });
  const { x: right, y: bottom } = toPlane(view, size, { x: size.width, y: size.height });
  return data.edges.filter(({ from, to }) => {
    const [x1, y1] = [positions[2 * from] ?? 0, positions[2 * from + 1] ?? 0];
    const [x2, y2] = [positions[2 * to] ?? 0, positions[2 * to + 1] ?? 0];
    return !(
      (x1 < left && x2 < left) ||
      (x1 > right && x2 > right) ||
      (y1 < top && y2 < top) ||
      (y1 > bottom && y2 > bottom)
    );
  });
}

function drawCoarseEdges(
  context: CanvasRenderingContext2D,
  { positions, view }: Picture,
  edges: readonly GraphEdge[],
  colour: string,
): void {
  context.strokeStyle = colour;
  context.lineWidth = 1 / view.zoom;
  edges.forEach(({ from, to }, index) => {
    if (index % COARSE_PATH === 0) context.beginPath();
    context.moveTo(positions[2 * from] ?? 0, positions[2 * from + 1] ?? 0);
    context.lineTo(positions[2 * to] ?? 0, positions[2 * to + 1] ?? 0);
    if (index % COARSE_PATH === COARSE_PATH - 1 || index === edges.length - 1) context.stroke();
  });
}

function drawFineEdges(
  context: CanvasRenderingContext2D,
  picture: Picture,
  paint: Paint,
  edges: readonly GraphEdge[],
): void {
  const { data, positions, view, current } = picture;
  const paths = new Map<string, { path: Path2D; dash: readonly number[]; width: number; isNear: boolean }>();
  for (const { from, to, type, weight } of edges) {
    const width = Math.round(Math.min(4, Math.max(0.5, weight * 1.5)) * 2) / 2;
    const isNear = from === current || to === current;
    const key = `${type} ${width} ${isNear}`;
    let entry = paths.get(key);
    if (entry === undefined) {
      entry = { path: new Path2D(), dash: entryIn(DASHES, type) ?? OTHER_DASH, width, isNear };
      paths.set(key, entry);
    }
    const [x1, y1] = [positions[2 * from] ?? 0, positions[2 * from + 1] ?? 0];
    const [x2, y2] = [positions[2 * to] ?? 0, positions[2 * to + 1] ?? 0];
    entry.path.moveTo(x1, y1);
    entry.path.lineTo(x2, y2);
    if (view.zoom > 0.5) addArrow(entry.path, x1, y1, x2, y2, nodeRadius(data, to));
  }
  for (const { path, dash, width, isNear } of paths.values()) {
    context.strokeStyle = isNear ? paint.accent : paint.edge;
    context.lineWidth = ((isNear ? width + 1 : width) * Math.min(1, view.zoom / AFAR)) / view.zoom;
    context.setLineDash(dash.map((length) => length / view.zoom));
    context.stroke(path);
  }
  context.setLineDash([]);
}

function addArrow(path: Path2D, x1: number, y1: number, x2: number, y2: number, radius: number): void {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < radius + 8) return;
  const [x, y] = [(x2 - x1) / length, (y2 - y1) / length];
  const [tipX, tipY] = [x2 - x * (radius + 1), y2 - y * (radius + 1)];
  path.moveTo(tipX - x * 5 - y * 2.5, tipY - y * 5 + x * 2.5);
  path.lineTo(tipX, tipY);
  path.lineTo(tipX - x * 5 + y * 2.5, tipY - y * 5 - x * 2.5);
}

/** In units of the plane; nodes with many relations are larger. */
export function nodeRadius({ neighbours, root }: GraphData, index: number): number {
  const degree = neighbours[index]?.length ?? 0;
  return Math.min(12, 4 + Math.sqrt(degree)) + (index === root ? 4 : 0);
}

function drawNodes(context: CanvasRenderingContext2D, picture: Picture, paint: Paint): void {
  const { data, positions, view, current } = picture;
  const isCoarse = picture.isMoving && data.nodes.length > SHAPED_NODES;
  context.lineWidth = 1.5 / view.zoom;
  context.strokeStyle = paint.back;
  // One path per node: a single path for all nodes of one color takes twice as long.
  data.nodes.forEach(({ type }, index) => {
    const [x, y] = [positions[2 * index] ?? 0, positions[2 * index + 1] ?? 0];
    const radius = Math.max(nodeRadius(data, index), SEEN / view.zoom);
    context.fillStyle = paint.types[type] ?? paint.text;
    if (isCoarse) {
      context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
      return;
    }
    context.beginPath();
    addShape(context, type, x, y, radius);
    context.fill();
    if (!picture.isMoving) context.stroke();
  });
  for (const index of [data.root, current]) {
    if (index === undefined) continue;
    context.strokeStyle = index === current ? paint.accent : paint.text;
    context.lineWidth = (index === current ? 3 : 2) / view.zoom;
    context.beginPath();
    const radius = nodeRadius(data, index) + 4 / view.zoom;
    context.arc(positions[2 * index] ?? 0, positions[2 * index + 1] ?? 0, radius, 0, 2 * Math.PI);
    context.stroke();
  }
}

function addShape(path: CanvasPath, type: EntityType, x: number, y: number, radius: number): void {
  const shape = SHAPES[type] ?? 'circle';
  if (shape === 'circle') {
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
  } else if (shape === 'square') {
    path.rect(x - radius * 0.9, y - radius * 0.9, radius * 1.8, radius * 1.8);
  } else if (shape === 'wedge') {
    path.moveTo(x, y + radius * 1.15);
    path.lineTo(x + radius * 1.05, y - radius * 0.85);
    path.lineTo(x - radius * 1.05, y - radius * 0.85);
    path.closePath();
  } else {
    const isDiamond = shape === 'diamond';
    path.moveTo(x, y - radius * 1.15);
    path.lineTo(x + radius * 1.05, isDiamond ? y : y + radius * 0.85);
    if (isDiamond) path.lineTo(x, y + radius * 1.15);
    path.lineTo(x - radius * 1.05, isDiamond ? y : y + radius * 0.85);
    path.closePath();
  }
}

/** Labels the current node, its neighbors, the start and the nodes with the most relations, without overlaps. */
function drawLabels(context: CanvasRenderingContext2D, picture: Picture, paint: Paint): void {
  const { data, positions, view, size, current, isMoving } = picture;
  const near = current === undefined ? [] : [current, ...(data.neighbours[current] ?? [])];
  const first = [...near, ...(data.root === undefined ? [] : [data.root])];
  const order = isMoving ? first : [...new Set([...first, ...byDegree(data)])];
  const corner = toPlane(view, size, { x: 0, y: 0 });
  const end = toPlane(view, size, { x: size.width, y: size.height });
  const taken: { x: number; y: number; width: number }[] = [];
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.lineWidth = 4;
  context.lineJoin = 'round';
  context.strokeStyle = paint.back;
  context.fillStyle = paint.text;
  const most = view.zoom < AFAR ? LABELS_AFAR : LABELS;
  for (const index of order.slice(0, 20 * LABELS)) {
    if (taken.length >= most) break;
    const at = { x: positions[2 * index] ?? 0, y: positions[2 * index + 1] ?? 0 };
    if (at.x < corner.x || at.x > end.x || at.y < corner.y || at.y > end.y) continue;
    const label = shortened(data.nodes[index]?.name ?? '');
    const screen = toScreen(view, size, at);
    const width = context.measureText(label).width;
    const beside = nodeRadius(data, index) * view.zoom + 6;
    const hasRoom = screen.x + beside + width <= size.width;
    const x = hasRoom ? screen.x + beside : Math.max(2, screen.x - beside - width);
    const overlaps = taken.some(
      (other) =>
        Math.abs(other.y - screen.y) < 16 && x < other.x + other.width + 8 && other.x < x + width + 8,
    );
    if (overlaps && index !== current) continue;
    taken.push({ x, y: screen.y, width });
    context.strokeText(label, x, screen.y);
    context.fillText(label, x, screen.y);
  }
}

/** Names come from documents, so direction marks and controls are removed. */
function shortened(name: string): string {
  const plain = name.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '␣').trim();
  return plain.length > LABEL_LENGTH ? `${plain.slice(0, LABEL_LENGTH - 1).toWellFormed()}…` : plain;
}

const orders = new WeakMap<GraphData, readonly number[]>();

function byDegree(data: GraphData): readonly number[] {
  let order = orders.get(data);
  if (order === undefined) {
    const degree = (index: number): number => data.neighbours[index]?.length ?? 0;
    order = [...data.nodes.keys()].sort((left, right) => degree(right) - degree(left));
    orders.set(data, order);
  }
  return order;
}
