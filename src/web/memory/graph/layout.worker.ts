import {
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type Simulation,
  type SimulationNodeDatum,
} from 'd3-force';
import type { FromLayout, ToLayout } from './layout.ts';

// Runs in parallel to the page. A frame is sent only after the page has returned the buffer of an earlier one, so that
// a slow page gets fewer frames and none are queued.

/** How long to work before checking for messages of the page, in ms. */
const SLICE = 12;
/** Above this number of nodes, the layout uses fewer and coarser steps. */
const MANY = 2_000;

let simulation: Simulation<SimulationNodeDatum, undefined> | undefined;
let free: Float32Array<ArrayBuffer>[] = [];
let isInstant = false;
let isLooping = false;
/** Whether the final frame has been sent. */
let isDone = false;

addEventListener('message', ({ data }: MessageEvent<ToLayout>) => {
  if (data.kind === 'start') begin(data);
  else if (data.kind === 'back') free.push(data.positions);
  else move(data);
  loop();
});

function begin({ count, links, isInstant: instant }: Extract<ToLayout, { kind: 'start' }>): void {
  isInstant = instant;
  free = [new Float32Array(2 * count), new Float32Array(2 * count)];
  const pairs = Array.from({ length: links.length / 2 }, (_none, index) => ({
    source: links[2 * index] ?? 0,
    target: links[2 * index + 1] ?? 0,
  }));
  simulation = forceSimulation(Array.from({ length: count }, (): SimulationNodeDatum => ({})))
    .force('links', forceLink(pairs).distance(40))
    .force('apart', forceManyBody().strength(-80).theta(1).distanceMax(600))
    .force('x', forceX(0).strength(0.06))
    .force('y', forceY(0).strength(0.06))
    .alphaDecay(count > MANY ? 0.045 : 0.0228)
    .stop();
}

/** A fixed node stays where it is put; the others follow. */
function move({ index, at }: Extract<ToLayout, { kind: 'hold' }>): void {
  const node = simulation?.nodes()[index];
  if (node === undefined) return;
  isDone = false;
  node.fx = at?.x ?? null;
  node.fy = at?.y ?? null;
  simulation?.alpha(Math.max(simulation.alpha(), 0.15));
}

function loop(): void {
  if (isLooping || isDone) return;
  isLooping = true;
  setTimeout(step);
}

function step(): void {
  isLooping = false;
  if (simulation === undefined) return;
  const until = performance.now() + SLICE;
  while (!isSettled() && (isInstant || performance.now() < until)) simulation.tick();
  const positions = free.pop();
  // The page returns the buffer after drawing, which starts the next step of a finished layout.
  if (positions === undefined) {
    if (!isSettled()) loop();
    return;
  }
  simulation.nodes().forEach(({ x = 0, y = 0 }, index) => {
    positions[2 * index] = x;
    positions[2 * index + 1] = y;
  });
  isDone = isSettled();
  const message: FromLayout = { positions, isSettled: isDone };
  postMessage(message, { transfer: [positions.buffer] });
  loop();
}

function isSettled(): boolean {
  return simulation === undefined || simulation.alpha() < simulation.alphaMin();
}
