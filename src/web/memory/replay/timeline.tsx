import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { count, time } from '../../shared/format.ts';
import { visible } from '../../shared/visible.ts';
import { ROLES, type Turn } from '../model.ts';

/** Height of a row, as in the style sheet. */
const ROW = 32;
/** Rows rendered beyond the edges, so that scrolling shows no gaps. */
const SPARE = 8;
const BEGINNING = 120;

interface TimelineProps {
  readonly turns: readonly Turn[];
  /** Indexes of the listed turns. */
  readonly places: readonly number[];
  readonly position: number;
  readonly go: (position: number) => void;
}

/**
 * All turns, one line each. Only the visible lines are in the document, so that fifty thousand are as fast as fifty.
 */
export function Timeline({ turns, places, position, go }: TimelineProps): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const [seen, setSeen] = useState({ top: 0, height: 400 });
  const look = (): void => {
    const { scrollTop = 0, clientHeight = 400 } = box.current ?? {};
    setSeen({ top: scrollTop, height: clientHeight });
  };
  useEffect(() => {
    const resized = new ResizeObserver(look);
    if (box.current !== null) resized.observe(box.current);
    return () => resized.disconnect();
  });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const top = position * ROW;
    if (top >= element.scrollTop && top + ROW <= element.scrollTop + element.clientHeight) return;
    element.scrollTop = top - element.clientHeight / 2;
  }, [position]);
  const first = Math.max(0, Math.floor(seen.top / ROW) - SPARE);
  const last = Math.min(places.length, Math.ceil((seen.top + seen.height) / ROW) + SPARE);
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = {
      ArrowUp: -1,
      ArrowDown: 1,
      PageUp: -10,
      PageDown: 10,
      Home: -Infinity,
      End: Infinity,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    go(Math.max(0, Math.min(places.length - 1, position + step)));
  };
  const inDocument = position >= first && position < last;
  return (
    <div
      ref={box}
      className="timeline"
      role="listbox"
      aria-label="Turns"
      tabIndex={0}
      aria-activedescendant={inDocument && places.length > 0 ? `${id}${position}` : undefined}
      onScroll={look}
      onKeyDown={onKeyDown}
    >
      <div role="presentation" style={{ height: places.length * ROW }}>
        {places.slice(first, last).map((place, offset) => {
          const turn = turns[place];
          const index = first + offset;
          return turn === undefined ? null : (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys.
            // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus, and marks the active row.
            <div
              key={turn.id}
              id={`${id}${index}`}
              role="option"
              className={`line ${turn.role}`}
              aria-selected={index === position}
              aria-posinset={index + 1}
              aria-setsize={places.length}
              style={{ top: index * ROW }}
              onClick={() => go(index)}
            >
              <span className="number">{place + 1}</span> <span className="role">{turn.role}</span>{' '}
              <span>{visible(turn.content.slice(0, BEGINNING)).replace(/\s+/g, ' ')}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** A slider over the turns; below it, a row per role shows who said something when. */
export function Scrubber({
  turns,
  places,
  position,
  go,
}: {
  readonly turns: readonly Turn[];
  readonly places: readonly number[];
  readonly position: number;
  readonly go: (position: number) => void;
}): ReactNode {
  const place = places[position] ?? 0;
  const turn = turns[place];
  return (
    <div className="scrubber">
      <input
        type="range"
        aria-label="Turn"
        aria-valuetext={
          turn === undefined
            ? ''
            : `Turn ${place + 1} of ${count(turns.length)}, ${turn.role}, ${time(turn.createdAt)}`
        }
        min={0}
        max={Math.max(0, places.length - 1)}
        value={position}
        onChange={(event) => go(event.target.valueAsNumber)}
      />
      <Ticks turns={turns} places={places} />
    </div>
  );
}

const WIDTH = 800;
const TICK = 5;

function Ticks({
  turns,
  places,
}: {
  readonly turns: readonly Turn[];
  readonly places: readonly number[];
}): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (canvas.current === null || context === null || context === undefined) return;
    context.clearRect(0, 0, WIDTH, TICK * ROLES.length);
    context.fillStyle = getComputedStyle(canvas.current).color;
    const width = Math.max(1, Math.min(6, WIDTH / Math.max(1, places.length) - 1));
    places.forEach((place, index) => {
      const x = places.length === 1 ? 0 : (index / (places.length - 1)) * (WIDTH - width);
      context.fillRect(x, TICK * rowOf(turns[place]?.role), width, TICK - 1);
    });
  }, [turns, places]);
  return <canvas ref={canvas} width={WIDTH} height={TICK * ROLES.length} className="ticks" />;
}

const ROWS: readonly string[] = ROLES;
/** A role that a later version has stored has the row of the first. */
const rowOf = (role: string | undefined): number => Math.max(0, ROWS.indexOf(role ?? 'user'));
