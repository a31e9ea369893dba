import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { visible } from '../../shared/visible.ts';
import type { Turn } from '../model.ts';

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
