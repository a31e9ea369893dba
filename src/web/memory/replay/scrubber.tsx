import { type ReactNode, useEffect, useRef } from 'react';
import { count, time } from '../../shared/format.ts';
import { ROLES, type Role, type Turn } from '../model.ts';

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
const ROW = 5;

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
    context.clearRect(0, 0, WIDTH, ROW * ROLES.length);
    context.fillStyle = getComputedStyle(canvas.current).color;
    const width = Math.max(1, Math.min(6, WIDTH / Math.max(1, places.length) - 1));
    places.forEach((place, index) => {
      const x = places.length === 1 ? 0 : (index / (places.length - 1)) * (WIDTH - width);
      context.fillRect(x, ROW * rowOf(turns[place]?.role), width, ROW - 1);
    });
  }, [turns, places]);
  return <canvas ref={canvas} width={WIDTH} height={ROW * ROLES.length} className="ticks" />;
}

const rowOf = (role: Role | undefined): number => Math.max(0, ROLES.indexOf(role ?? 'user'));
