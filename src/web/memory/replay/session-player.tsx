import { type ReactNode, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import { count, counted } from '../../shared/format.ts';
import { navigate, useLocation } from '../../shared/router.ts';
import { useShortcuts } from '../../shared/shortcuts.ts';
import { visible } from '../../shared/visible.ts';
import { Unreachable } from '../unreachable.tsx';
import { Conversation } from './conversation.tsx';
import { download, jsonLines, markdown } from './export.ts';
import { NO_FILTER, passing, positionOf } from './filter.ts';
import { Filters } from './filters.tsx';
import { Scrubber } from './scrubber.tsx';
import { Timeline } from './timeline.tsx';
import { type Player, SPEEDS, usePlayer } from './use-player.ts';
import { type Turns, useTurns } from './use-turns.ts';

/** Plays one session turn by turn. */
export function SessionPlayer({ session }: { readonly session: string }): ReactNode {
  const found = useTurns(session);
  const { turns, state, error, reload } = found;
  const [filter, setFilter] = useState(NO_FILTER);
  const wanted = useDeferredValue(filter);
  const places = useMemo(() => passing(turns, wanted), [turns, wanted]);
  const [current, setCurrent] = useLinkedTurn(session);
  const position = positionOf(places, current);
  const go = (next: number): void => setCurrent(places[next] ?? 0);
  const player = usePlayer(turns, places, position, go, state === 'loading');
  const step = (by: number): void => {
    player.pause();
    go(Math.max(0, Math.min(places.length - 1, position + by)));
  };
  useShortcuts([
    { keys: 'Space', what: 'play or pause', run: player.toggle },
    { keys: 'ArrowLeft', what: 'previous turn', run: () => step(-1) },
    { keys: 'ArrowRight', what: 'next turn', run: () => step(1) },
    { keys: 'Home', what: 'first turn', run: () => step(-Infinity) },
    { keys: 'End', what: 'last turn', run: () => step(Infinity) },
  ]);
  const list = { turns, places, position };
  return (
    <section aria-label={`Session ${visible(session)}`} className="player">
      <h2>{visible(session)}</h2>
      {error === undefined ? null : <Unreachable error={error} retry={reload} />}
      <Amount found={found} />
      {state === 'failed' && turns.length === 0 ? null : (
        <Filters turns={turns} filter={filter} change={setFilter} />
      )}
      {places.length === 0 ? (
        <p role="status">{turns.length === 0 ? '' : 'No turn matches the filter.'}</p>
      ) : (
        <>
          <Controls
            player={player}
            step={step}
            shown={`Turn ${count((places[position] ?? 0) + 1)} of ${count(turns.length)}`}
          />
          <Scrubber
            {...list}
            go={(next) => {
              player.pause();
              go(next);
            }}
          />
          <div className="split even">
            <Timeline {...list} go={go} />
            <Conversation {...list} />
          </div>
        </>
      )}
      <Exports session={session} found={found} />
    </section>
  );
}

/** Buttons to play and step through the turns. `shown` describes the current turn. */
function Controls({
  player,
  step,
  shown,
}: {
  readonly player: Player;
  readonly step: (by: number) => void;
  readonly shown: string;
}): ReactNode {
  return (
    <div className="row controls">
      <button type="button" onClick={() => step(-1)} aria-keyshortcuts="ArrowLeft" aria-label="Previous turn">
        ←
      </button>
      <button type="button" className="primary" onClick={player.toggle} aria-keyshortcuts="Space">
        {player.isPlaying ? '❚❚ Pause' : '▶ Play'}
      </button>
      <button type="button" onClick={() => step(1)} aria-keyshortcuts="ArrowRight" aria-label="Next turn">
        →
      </button>
      <fieldset className="tabs">
        <legend>Speed</legend>
        {SPEEDS.map(({ name, factor }) => (
          <button
            key={name}
            type="button"
            aria-pressed={player.speed === factor}
            onClick={() => player.setSpeed(factor)}
          >
            {name}
          </button>
        ))}
      </fieldset>
      <span role="status">{player.isPlaying ? 'playing' : shown}</span>
    </div>
  );
}

function Amount({ found: { turns, state } }: { readonly found: Turns }): ReactNode {
  if (state === 'loading') return <p className="quiet">Loading… {counted(turns.length, 'turn')} so far.</p>;
  if (state === 'cut')
    return (
      <p className="note">
        ! Only the first {counted(turns.length, 'turn')} are loaded: the session is larger than a page can
        hold.
      </p>
    );
  return null;
}

function Exports({
  session,
  found: { turns, state },
}: {
  readonly session: string;
  readonly found: Turns;
}): ReactNode {
  if (turns.length === 0) return null;
  const isLoading = state === 'loading';
  return (
    <div className="row">
      <button
        type="button"
        disabled={isLoading}
        onClick={() => download(`${session}.jsonl`, 'application/jsonl', jsonLines(turns))}
      >
        Export JSONL
      </button>
      <button
        type="button"
        disabled={isLoading}
        onClick={() => download(`${session}.md`, 'text/markdown', markdown(session, turns))}
      >
        Export Markdown
      </button>
    </div>
  );
}

/**
 * How long a turn must be displayed before it is written to the address, in ms: browsers limit the number of changes.
 */
const ADDRESS_DELAY = 300;

/** Index of the current turn, synchronized with `?turn=` in the address, which counts from 1. */
function useLinkedTurn(session: string): readonly [number, (place: number) => void] {
  const { query } = useLocation();
  const asked = query.get('turn') ?? '1';
  const written = useRef(asked);
  const [place, setPlace] = useState(() => placeOf(asked));
  useEffect(() => {
    if (asked === written.current) return;
    written.current = asked;
    setPlace(placeOf(asked));
  }, [asked]);
  useEffect(() => {
    const turn = String(place + 1);
    if (turn === written.current) return;
    const timer = setTimeout(() => {
      written.current = turn;
      navigate('/replay', { session, turn }, { replace: true });
    }, ADDRESS_DELAY);
    return () => clearTimeout(timer);
  }, [place, session]);
  return [place, setPlace];
}

function placeOf(asked: string): number {
  return /^[1-9]\d{0,8}$/.test(asked) ? Number(asked) - 1 : 0;
}
