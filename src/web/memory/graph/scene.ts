import { onThemeChange } from '../../shared/theme.ts';
import { fitted, nodeAt, type Point, type Size, toPlane, type View, zoomed } from './geometry.ts';
import { type Layout, startLayout } from './layout.ts';
import type { GraphData } from './load.ts';
import { draw, nodeRadius, type Paint, paintOf } from './paint.ts';

export interface SceneEvents {
  readonly onCurrent: (index: number | undefined) => void;
  readonly onOpen: (index: number) => void;
  readonly onSettled: () => void;
}

/** Time after the last interaction before fine lines are drawn again, in ms. */
const FINE_LINES_AFTER = 150;
/** Hit distance of a pointer or finger around a node, in pixels. */
const REACH = 14;

/**
 * The drawing, outside of React: frames come from the layout and are drawn in animation frames, only if something has
 * changed.
 */
export class Scene {
  positions: Float32Array<ArrayBuffer> = new Float32Array();
  #view: View = { x: 0, y: 0, zoom: 1 };
  #size: Size = { width: 1, height: 1 };
  #ratio = 1;
  #paint: Paint;
  #layout: Layout;
  #current: number | undefined;
  #isMoving = true;
  /** Whether the user is moving it. */
  #isHeld = false;
  #calming: ReturnType<typeof setTimeout> | undefined;
  /** Whether the view follows the whole graph, which ends when the user moves it. */
  #isFitting = true;
  #frame = 0;
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #data: GraphData;
  readonly #events: SceneEvents;
  readonly #gone = new AbortController();

  constructor(canvas: HTMLCanvasElement, data: GraphData, events: SceneEvents) {
    const context = canvas.getContext('2d', { alpha: false });
    if (context === null) throw new Error('this browser has no canvas');
    this.#canvas = canvas;
    this.#context = context;
    this.#data = data;
    this.#events = events;
    this.#paint = paintOf(canvas);
    const isInstant = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.#layout = startLayout(data, isInstant, ({ positions, isSettled }) => {
      const former = this.positions;
      this.positions = positions;
      if (former.length > 0) this.#layout.giveBack(former);
      const wasMoving = this.#isMoving;
      this.#isMoving = !isSettled;
      if (this.#isFitting) this.#view = fitted(positions, this.#size);
      this.redraw();
      if (wasMoving && isSettled) this.#events.onSettled();
    });
    this.#listen();
  }

  get current(): number | undefined {
    return this.#current;
  }

  choose(index: number | undefined): void {
    if (index === this.#current) return;
    this.#current = index;
    if (index !== undefined) this.#bringIntoSight(index);
    this.redraw();
    this.#events.onCurrent(index);
  }

  /** @param factor above 1 zooms in */
  zoom(factor: number, at: Point = { x: this.#size.width / 2, y: this.#size.height / 2 }): void {
    this.#touched();
    this.#view = zoomed(this.#view, this.#size, at, factor);
    this.redraw();
  }

  fit(): void {
    this.#isFitting = true;
    this.#view = fitted(this.positions, this.#size);
    this.redraw();
  }

  redraw(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.positions.length === 0) return;
      draw(
        this.#context,
        {
          data: this.#data,
          positions: this.positions,
          view: this.#view,
          size: this.#size,
          current: this.#current,
          isMoving: this.#isMoving || this.#isHeld,
        },
        this.#paint,
        this.#ratio,
      );
    });
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#calming);
    this.#layout.close();
    this.#gone.abort();
  }

  #touched(): void {
    this.#isFitting = false;
    this.#isHeld = true;
    clearTimeout(this.#calming);
    this.#calming = setTimeout(() => {
      this.#isHeld = false;
      this.redraw();
    }, FINE_LINES_AFTER);
  }

  #listen(): void {
    const { signal } = this.#gone;
    const canvas = this.#canvas;
    const resized = new ResizeObserver(([entry]) => {
      if (entry !== undefined) this.#resize(entry.contentRect);
    });
    resized.observe(canvas);
    signal.addEventListener('abort', () => resized.disconnect());
    signal.addEventListener(
      'abort',
      onThemeChange(() => this.#repaint()),
    );
    canvas.addEventListener(
      'wheel',
      (event) => {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY / 400), this.#point(event));
      },
      { signal, passive: false },
    );
    canvas.addEventListener(
      'dblclick',
      () => this.#current !== undefined && this.#events.onOpen(this.#current),
      {
        signal,
      },
    );
    this.#listenToPointers(signal);
  }

  /** One pointer drags a node or the plane, two zoom. */
  #listenToPointers(signal: AbortSignal): void {
    const down = new Map<number, Point>();
    let held: number | undefined;
    this.#canvas.addEventListener(
      'pointerdown',
      (event) => {
        this.#canvas.setPointerCapture(event.pointerId);
        down.set(event.pointerId, this.#point(event));
        held = down.size === 1 ? this.#nodeAt(this.#point(event)) : undefined;
        if (down.size === 1) this.choose(held);
      },
      { signal },
    );
    this.#canvas.addEventListener(
      'pointermove',
      (event) => {
        const before = down.get(event.pointerId);
        if (before === undefined) return;
        const at = this.#point(event);
        down.set(event.pointerId, at);
        if (down.size === 1) this.#drag(before, at, held);
        else this.#pinch(before, at, [...down].find(([id]) => id !== event.pointerId)?.[1]);
      },
      { signal },
    );
    const up = ({ pointerId }: PointerEvent): void => {
      down.delete(pointerId);
      if (held !== undefined) this.#layout.hold(held, null);
      held = undefined;
    };
    this.#canvas.addEventListener('pointerup', up, { signal });
    this.#canvas.addEventListener('pointercancel', up, { signal });
  }

  #drag(before: Point, at: Point, held: number | undefined): void {
    if (before.x === at.x && before.y === at.y) return;
    this.#touched();
    if (held !== undefined) {
      this.#layout.hold(held, toPlane(this.#view, this.#size, at));
      return;
    }
    const { x, y, zoom } = this.#view;
    this.#view = { x: x - (at.x - before.x) / zoom, y: y - (at.y - before.y) / zoom, zoom };
    this.redraw();
  }

  #pinch(before: Point, at: Point, other: Point | undefined): void {
    if (other === undefined) return;
    const distance = (from: Point): number => Math.max(10, Math.hypot(from.x - other.x, from.y - other.y));
    this.zoom(distance(at) / distance(before), { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 });
  }

  #point({ clientX, clientY }: MouseEvent): Point {
    const { left, top } = this.#canvas.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  }

  #nodeAt(at: Point): number | undefined {
    const found = nodeAt(
      this.positions,
      toPlane(this.#view, this.#size, at),
      Math.max(REACH / this.#view.zoom, 12),
    );
    return found;
  }

  #bringIntoSight(index: number): void {
    const [x, y] = [this.positions[2 * index] ?? 0, this.positions[2 * index + 1] ?? 0];
    const corner = toPlane(this.#view, this.#size, { x: REACH, y: REACH });
    const end = toPlane(this.#view, this.#size, {
      x: this.#size.width - REACH,
      y: this.#size.height - REACH,
    });
    const radius = nodeRadius(this.#data, index);
    if (x - radius > corner.x && x + radius < end.x && y - radius > corner.y && y + radius < end.y) return;
    this.#isFitting = false;
    this.#view = { ...this.#view, x, y };
  }

  #resize({ width, height }: Size): void {
    this.#size = { width: Math.max(1, width), height: Math.max(1, height) };
    this.#ratio = Math.min(2, devicePixelRatio);
    this.#canvas.width = Math.round(this.#size.width * this.#ratio);
    this.#canvas.height = Math.round(this.#size.height * this.#ratio);
    if (this.#isFitting && this.positions.length > 0) this.#view = fitted(this.positions, this.#size);
    this.redraw();
  }

  #repaint(): void {
    this.#paint = paintOf(this.#canvas);
    this.redraw();
  }
}
