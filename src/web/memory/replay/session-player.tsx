import { type ReactNode, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import { MEMORY_PAGE_LIMITS } from '../../../core/memory-limits.ts';
import { count, counted, time } from '../../shared/format.ts';
import { navigate, useLocation } from '../../shared/router.tsx';
import { useShortcuts } from '../../shared/shortcuts.tsx';
import { visible } from '../../shared/visible.ts';
import { sessionKey, useDeletions } from '../deletions.ts';
import { LongText } from '../graph/details.tsx';
import { API, type Turn } from '../model.ts';
import { Unreachable } from '../placeholder.tsx';
import { Removal } from '../removal.tsx';
import { download, jsonLines, markdown } from './export.ts';
import { Filters, NO_FILTER, passing, positionOf } from './filters.tsx';
import { Scrubber, Timeline } from './timeline.tsx';
import { type Turns, useTurns } from './use-turns.ts';

/** Plays one session turn by turn. */
export function SessionPlayer({ session }: { readonly session: string }): ReactNode {
  const found = useTurns(session);
  const { turns, state, error, reload } = found;
  const [filter, setFilter] = useState(NO_FILTER);
  const wanted = useDeferredValue(filter);
  const places = useMemo(() => passing(turns, wanted), [turns, wanted]);
  const [current, setCurrent] = useLinkedTurn(session, turns);
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
  const hidden = useDeletions(turns, () => undefined);
  if (hidden.has(sessionKey(session)))
    return (
      <section aria-label={`Session ${visible(session)}`} className="player">
        <h2>{visible(session)}</h2>
        <p role="status">Deleted, unless you undo it.</p>
      </section>
    );
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
      {turns.length === 0 ? null : (
        <Removal
          what="session"
          name={session}
          path={`${API}/sessions/${encodeURIComponent(session)}`}
          hides={sessionKey(session)}
          gone={() => {
            if (new URLSearchParams(location.search).get('session') === session) navigate('/replay');
          }}
        />
      )}
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
function useLinkedTurn(session: string, turns: readonly Turn[]): readonly [number, (place: number) => void] {
  const { query } = useLocation();
  const seq = Number(query.get('seq') ?? Number.NaN);
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
    if (turn === written.current || !Number.isNaN(seq)) return;
    const timer = setTimeout(() => {
      written.current = turn;
      navigate('/replay', { session, turn }, { replace: true });
    }, ADDRESS_DELAY);
    return () => clearTimeout(timer);
  }, [place, session, seq]);
  // A link from the search names the turn by its number in the store, until its place in the session is known.
  useEffect(() => {
    const found = turns.findIndex((turn) => turn.seq === seq);
    if (found === -1) return;
    written.current = String(found + 1);
    setPlace(found);
    navigate('/replay', { session, turn: written.current }, { replace: true });
  }, [turns, seq, session]);
  return [place, setPlace];
}

function placeOf(asked: string): number {
  return /^[1-9]\d{0,8}$/.test(asked) ? Number(asked) - 1 : 0;
}

const SPEEDS = [
  { name: '1×', factor: 1 },
  { name: '4×', factor: 4 },
  { name: '∞', factor: Infinity },
] as const;

interface Player {
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
function usePlayer(
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

/** Number of earlier turns that are displayed, and how much of each. */
const BEFORE = 4;
const BEFORE_LENGTH = 400;

/** The conversation up to the current turn. */
function Conversation({
  turns,
  places,
  position,
}: {
  readonly turns: readonly Turn[];
  readonly places: readonly number[];
  readonly position: number;
}): ReactNode {
  const shown = places.slice(Math.max(0, position - BEFORE), position + 1);
  return (
    <ol className="conversation" aria-label="Conversation">
      {shown.map((place) => {
        const turn = turns[place];
        if (turn === undefined) return null;
        const isCurrent = place === places[position];
        return (
          <li key={turn.id} className={`turn ${turn.role}`} aria-current={isCurrent ? 'step' : undefined}>
            <p className="quiet">
              <strong>
                {place + 1}. {turn.role}
              </strong>
              , {visible(turn.agentId)}, <time dateTime={turn.createdAt}>{time(turn.createdAt)}</time>
            </p>
            {isCurrent ? <LongText text={turn.content} /> : <Beginning text={turn.content} />}
          </li>
        );
      })}
    </ol>
  );
}

function Beginning({ text }: { readonly text: string }): ReactNode {
  const isLong = text.length > BEFORE_LENGTH;
  return (
    <pre className="content">
      {visible(isLong ? text.slice(0, BEFORE_LENGTH) : text)}
      {isLong ? '…' : ''}
    </pre>
  );
}
