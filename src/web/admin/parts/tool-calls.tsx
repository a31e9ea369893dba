import { createContext, type ReactNode, useContext, useMemo } from 'react';
import { counted } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { field, toolOf } from '../model/fields.ts';
import { DAY, HOUR, recordedBy, type Usage, usagePath } from '../model/recorded.ts';
import { useRequests } from '../model/requests.ts';
import { figuresBy, periodBefore } from '../model/usage.ts';
import { EVERY } from './use-figures.ts';

/** Tool calls of the last day by target and tool, if they are recorded. */
const Recorded = createContext<Usage | undefined>(undefined);

/** Loads what is recorded of all targets inside, in one request. */
export function RecordedToolCalls({
  isRecording,
  children,
}: {
  readonly isRecording: boolean;
  readonly children: ReactNode;
}): ReactNode {
  const lastDay = periodBefore(Date.now(), DAY, HOUR);
  const { data } = useLoaded<Usage>(isRecording ? usagePath('target,tool', lastDay) : undefined, EVERY);
  return <Recorded value={data}>{children}</Recorded>;
}

/** Tools that are named; the Usage page has all of them. */
const MOST_CALLED = 5;

/** How often the tools of a target were called: in the last day, or as far as the page knows. */
export function ToolCalls({ target }: { readonly target: string }): ReactNode {
  const { entries } = useRequests();
  const recorded = useContext(Recorded);
  const tools = useMemo(() => {
    if (recorded === undefined)
      return figuresBy(
        entries.filter((entry) => field(entry, 'mcp.target') === target),
        toolOf,
      );
    const rows = recorded.rows.filter(({ group }) => group['target'] === target);
    return recordedBy({ ...recorded, rows }, 'tool');
  }, [entries, recorded, target]);
  if (tools.length === 0) return null;
  const [calls, errors] = [sum(tools.map(({ requests }) => requests)), sum(tools.map((tool) => tool.errors))];
  return (
    <div className="quiet">
      <Link
        to={recorded === undefined ? '/requests' : '/conversations'}
        query={recorded === undefined ? { text: `mcp.target=${target}` } : { target, protocol: 'mcp' }}
      >
        {counted(calls, 'tool call')}
        {errors === 0 ? '' : `, ✗ ${counted(errors, 'error')}`}
      </Link>{' '}
      {recorded === undefined ? '' : 'in 24 h: '}
      {tools
        .slice(0, MOST_CALLED)
        .map(({ name, requests }) => `${visible(name)} ${requests}`)
        .join(', ')}
      {tools.length > MOST_CALLED ? ` and ${tools.length - MOST_CALLED} more` : ''}
    </div>
  );
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
