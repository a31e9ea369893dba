import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import { type Arrow, DIRECTIONS, nearest } from './geometry.ts';
import type { GraphData } from './load.ts';
import { Scene } from './scene.ts';

interface CanvasProps {
  readonly data: GraphData;
  readonly current: number | undefined;
  readonly label: string;
  readonly onCurrent: (index: number | undefined) => void;
  readonly onOpen: (index: number) => void;
  /** The element that Esc focuses. */
  readonly leave: RefObject<HTMLElement | null>;
}

/** The graph as a drawing for pointer, touch and keyboard. The table displays the same data as text. */
export function GraphCanvas({ data, current, label, onCurrent, onOpen, leave }: CanvasProps): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scene = useRef<Scene>(undefined);
  const [isSettled, setSettled] = useState(false);
  const events = useRef({ onCurrent, onOpen });
  events.current = { onCurrent, onOpen };
  useEffect(() => {
    if (canvas.current === null) return;
    setSettled(false);
    const drawn = new Scene(canvas.current, data, {
      onCurrent: (index) => events.current.onCurrent(index),
      onOpen: (index) => events.current.onOpen(index),
      onSettled: () => setSettled(true),
    });
    scene.current = drawn;
    return () => drawn.close();
  }, [data]);
  useEffect(() => scene.current?.choose(current), [current]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key, ctrlKey, altKey, metaKey } = event;
    const drawn = scene.current;
    if (drawn === undefined || ctrlKey || altKey || metaKey) return;
    if (key === 'Escape') leave.current?.focus();
    else if (!acted(drawn, data, key, (index) => onOpen(index))) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <div
        className="graph"
        data-settled={isSettled}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application handles keys.
        tabIndex={0}
        role="application"
        aria-label={label}
        aria-describedby="graph-keys"
        onKeyDown={onKeyDown}
      >
        <canvas ref={canvas} />
      </div>
      <div className="row">
        <button type="button" onClick={() => scene.current?.zoom(1.4)}>
          Zoom in
        </button>
        <button type="button" onClick={() => scene.current?.zoom(1 / 1.4)}>
          Zoom out
        </button>
        <button type="button" onClick={() => scene.current?.fit()}>
          Show all
        </button>
      </div>
      <p id="graph-keys" className="quiet">
        In the drawing: arrow keys move to the nearest neighbor, Enter starts from it, + and − zoom, 0 shows
        all, Esc leaves.
      </p>
    </>
  );
}

const isArrow = (key: string): key is Arrow => Object.hasOwn(DIRECTIONS, key);

function acted(scene: Scene, data: GraphData, key: string, open: (index: number) => void): boolean {
  const { current, positions } = scene;
  if (isArrow(key)) {
    if (positions.length === 0) return true;
    const next =
      current === undefined
        ? (data.root ?? 0)
        : nearest(positions, data.neighbours[current] ?? [], current, key);
    if (next !== undefined) scene.choose(next);
    return true;
  }
  if (key === 'Enter') {
    if (current !== undefined) open(current);
  } else if (key === '+' || key === '=') scene.zoom(1.4);
  else if (key === '-') scene.zoom(1 / 1.4);
  else if (key === '0') scene.fit();
  else return false;
  return true;
}
