import { useEffect, useRef, useState } from 'react';
import { MEMORY_PAGE_LIMITS } from '../../../core/memory-limits.ts';
import type { Turn } from '../model.ts';

export const SPEEDS = [
  { name: '1×', factor: 1 },
  { name: '4×', factor: 4 },
  { name: '∞', factor: Infinity },
] as const;

export interface Player {
  readonly isPlaying: boolean;
  readonly speed: number;
  readonly setSpeed: (speed: number) => void;
  readonly toggle: () => void;
  readonly pause: () => void;
}

/**
 * Advances automatically, at the pace of the conversation or faster.
 *
 * @param places indexes of the turns that are played
 * @param position of the current one among them
 * @param mayGrow more turns are loading, so wait at the end
 */
export function usePlayer(
  turns: readonly Turn[],
  places: readonly number[],
  position: number,
  go: (position: number) => void,
  mayGrow: boolean,
): Player {
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<number>(1);
  // Turns that arrive in the meantime do not restart the wait.
  const latest = useRef({ turns, places, go });
  latest.current = { turns, places, go };
  const isAtEnd = position >= places.length - 1;
  useEffect(() => {
    if (!isPlaying) return;
    if (isAtEnd) {
      if (!mayGrow) setPlaying(false);
      return;
    }
    const { turns, places } = latest.current;
    const wait = pause(turns[places[position] ?? 0], turns[places[position + 1] ?? 0], speed);
    const timer = setTimeout(() => latest.current.go(position + 1), wait);
    return () => clearTimeout(timer);
  }, [isPlaying, isAtEnd, mayGrow, position, speed]);
  return {
    isPlaying,
    speed,
    setSpeed,
    toggle: () => {
      // At the end, starts again from the beginning.
      if (!isPlaying && isAtEnd && !mayGrow) go(0);
      setPlaying(!isPlaying);
    },
    pause: () => setPlaying(false),
  };
}

/** Long pauses are shortened; every turn is displayed long enough to be seen. */
function pause(from: Turn | undefined, to: Turn | undefined, speed: number): number {
  const real = Date.parse(to?.createdAt ?? '') - Date.parse(from?.createdAt ?? '');
  const gap = Math.min(MEMORY_PAGE_LIMITS.replayGap, Math.max(0, Number.isNaN(real) ? 0 : real));
  return Math.max(MEMORY_PAGE_LIMITS.replayStep, gap / speed);
}
