import { type ReactNode, useMemo } from 'react';
import { Select } from '../../shared/form.tsx';
import { ROLES, type Role, type Turn } from '../model.ts';

/** Empty values match everything. */
interface Filter {
  readonly role: Role | '';
  readonly agent: string;
  readonly text: string;
}

export const NO_FILTER: Filter = { role: '', agent: '', text: '' };

/** Indexes of the matching turns, in order. */
export function passing(turns: readonly Turn[], { role, agent, text }: Filter): number[] {
  // Without a lower-case copy, because the turns may have many megabytes.
  const wanted =
    text === '' ? undefined : new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`), 'iu');
  const places: number[] = [];
  turns.forEach((turn, place) => {
    if (role !== '' && turn.role !== role) return;
    if (agent !== '' && turn.agentId !== agent) return;
    if (wanted === undefined || wanted.test(turn.content)) places.push(place);
  });
  return places;
}

/** Position of the first index that is not before `place`; the last position if all are. */
export function positionOf(places: readonly number[], place: number): number {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] ?? 0) < place) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, Math.min(low, places.length - 1));
}

/** Filters the turns by role, agent and text. */
export function Filters({
  turns,
  filter,
  change,
}: {
  readonly turns: readonly Turn[];
  readonly filter: Filter;
  readonly change: (filter: Filter) => void;
}): ReactNode {
  const agents = useMemo(() => [...new Set(turns.map(({ agentId }) => agentId))].sort(), [turns]);
  return (
    <div className="row">
      <Select
        label="Role"
        value={filter.role}
        values={[['', 'all'], ...ROLES.map((role) => [role] as const)]}
        choose={(next) => change({ ...filter, role: ROLES.find((role) => role === next) ?? '' })}
      />
      <Select
        label="Agent"
        value={filter.agent}
        values={[['', 'all'], ...agents.map((agent) => [agent] as const)]}
        choose={(agent) => change({ ...filter, agent })}
      />
      <label className="wide">
        Search in the turns
        <input
          data-filter
          type="search"
          value={filter.text}
          onChange={(event) => change({ ...filter, text: event.target.value })}
        />
      </label>
    </div>
  );
}
