import { type ReactNode, useMemo } from 'react';
import { count, counted } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { addressOf, callerOf, field, isRefused, statusOf } from '../model/fields.ts';
import type { Entry } from '../model/requests.ts';
import type { RecordPage, ShownRecord } from '../records/record.ts';
import { EVERY, type PeriodFigures } from './use-figures.ts';

/** One refused request: what its reason is called, and who sent it. All are texts that may be displayed. */
interface Refusal {
  readonly status: number;
  /** The part of the gateway that refused it, and what the client got to know. */
  readonly reason: string;
  readonly caller: string;
}

/** Refused requests of one status for one reason. */
interface Group {
  readonly status: number;
  readonly reason: string;
  readonly requests: number;
  /** Those with the most requests first. */
  readonly callers: readonly (readonly [caller: string, requests: number])[];
}

/** Reasons and callers that are named; clients can make up any number of them. */
const REASONS = 12;
const CALLERS = 3;
/** Records that are read of a long period. */
const RECORDS = 500;

/** Which requests of the period were refused, why, and whose they were. Nothing if there are none. */
export function Refusals({ figures }: { readonly figures: PeriodFigures }): ReactNode {
  const { entries, isRecorded, total, period } = figures;
  const times = { from: new Date(period.from).toISOString(), to: new Date(period.to).toISOString() };
  const { data } = useLoaded<RecordPage>(
    isRecorded && total.refused > 0
      ? `/api/records?${new URLSearchParams({ status: 'refused', ...times, limit: String(RECORDS) })}`
      : undefined,
    EVERY,
  );
  const groups = useMemo(
    () =>
      groupsOf(
        isRecorded ? (data?.records ?? []).map(refusalOfRecord) : entries.filter(isRefused).map(refusalOf),
      ),
    [isRecorded, data, entries],
  );
  if (total.refused === 0) return null;
  const isPart = isRecorded && data?.next !== undefined && data.next !== null;
  return (
    <section className="panel" aria-labelledby="refused">
      <h2 id="refused">Refused requests</h2>
      <p className="quiet">
        {counted(total.refused, 'request')} got a 4xx or, in MCP, an error because a rule, a limit or a
        missing route or key stopped them.
        {isPart ? ` The table is of the newest ${count(data.records.length)}.` : ''}
      </p>
      {groups.length === 0 ? null : <Reasons groups={groups} />}
      {groups.length <= REASONS ? null : (
        <p className="quiet">and {counted(groups.length - REASONS, 'rarer reason')}</p>
      )}
      <p>
        {isRecorded ? (
          <Link to="/conversations" query={{ status: 'refused', protocol: 'all' }}>
            Refused requests of the record
          </Link>
        ) : (
          <Link to="/requests" query={{ status: 'refused', ...times }}>
            Show them
          </Link>
        )}
      </p>
    </section>
  );
}

/** Empty until the record has answered, and for those whose role may not read it. */
function Reasons({ groups }: { readonly groups: readonly Group[] }): ReactNode {
  return (
    <div className="scroll">
      <table className="cards">
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Reason</th>
            <th scope="col" className="number">
              Requests
            </th>
            <th scope="col">Callers</th>
          </tr>
        </thead>
        <tbody>
          {groups.slice(0, REASONS).map((group) => (
            <tr key={`${group.status} ${group.reason}`}>
              <td className="short warn" data-name="Status">
                ! {group.status}
              </td>
              <td className="any" data-name="Reason">
                {group.reason}
              </td>
              <td className="number" data-name="Requests">
                {count(group.requests)}
              </td>
              <td className="any" data-name="Callers">
                <Callers group={group} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Callers({ group: { callers } }: { readonly group: Group }): ReactNode {
  const others = callers.length - CALLERS;
  const shown = callers
    .slice(0, CALLERS)
    .map(([caller, requests]) => (callers.length === 1 ? caller : `${caller} ${count(requests)}`));
  return `${shown.join(', ')}${others > 0 ? ` and ${count(others)} more` : ''}`;
}

function groupsOf(refusals: readonly Refusal[]): readonly Group[] {
  const groups = Map.groupBy(refusals, ({ status, reason }) => `${status} ${reason}`);
  return [...groups.values()]
    .flatMap((own): Group[] => {
      const [first] = own;
      if (first === undefined) return [];
      const callers = [...Map.groupBy(own, ({ caller }) => caller)]
        .map(([caller, theirs]) => [caller, theirs.length] as const)
        .sort(([, a], [, b]) => b - a);
      return [{ status: first.status, reason: first.reason, requests: own.length, callers }];
    })
    .sort((a, b) => b.requests - a.requests);
}

/** The text for the client is that of a tool that does not exist, and names it. */
const IN_MCP = 'the rules do not allow the MCP call';

function refusalOf(entry: Entry): Refusal {
  return {
    status: statusOf(entry),
    reason: reasonText(field(entry, 'reason'), statusOf(entry) < 400 ? IN_MCP : field(entry, 'error')),
    caller: callerOf(entry) || addressOf(entry) || 'not known',
  };
}

function refusalOfRecord({ status, reason = '', error = '', key, user, client }: ShownRecord): Refusal {
  return {
    status,
    reason: reasonText(visible(reason), status < 400 ? IN_MCP : visible(error)),
    caller: visible(
      [key, user && key ? `(${user})` : user].filter(Boolean).join(' ') || (client ?? 'not known'),
    ),
  };
}

/** Without a reason of the gateway, the server behind it has refused the request. */
const reasonText = (reason: string, error: string): string =>
  [reason === '' ? 'the server behind the gateway' : reason, error].filter((part) => part !== '').join(': ');
