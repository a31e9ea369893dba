import { type ReactNode, useMemo } from 'react';
import { visible } from '../../shared/visible.ts';
import { ROLES, type Role, type Turn } from '../model.ts';
import type { Filter } from './filter.ts';

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
      <label>
        Role
        <select
          value={filter.role}
          onChange={(event) => change({ ...filter, role: event.target.value as Role | '' })}
        >
          <option value="">all</option>
          {ROLES.map((role) => (
            <option key={role}>{role}</option>
          ))}
        </select>
      </label>
      <label>
        Agent
        <select value={filter.agent} onChange={(event) => change({ ...filter, agent: event.target.value })}>
          <option value="">all</option>
          {agents.map((agent) => (
            <option key={agent} value={agent}>
              {visible(agent)}
            </option>
          ))}
        </select>
      </label>
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
