import { decides, EMPTY_TRACE, type TraceModel, type TracePolicy } from '../trace-model.ts';
import { placeText } from './read-event.ts';
import { requestLine } from './request-line.ts';

/** Symbol for the outcome of one stage. */
export type Mark = '✓' | '✗' | '–' | '○' | '…' | '!';

/** One stage of a request, as in `✗ authorization`. */
export interface Stage {
  readonly mark: Mark;
  readonly text: string;
}

/** The stages of the request: route, policies, backend. `○` marks stages that were not reached. */
export function stagesOf(trace: TraceModel): Stage[] {
  if (trace.steps.length === 0) return [];
  const isOver = trace.verdict !== undefined;
  const stages: Stage[] = [];
  const { route, backend, policies } = trace;
  if (route === undefined) stages.push({ mark: isOver ? '○' : '…', text: 'route' });
  else
    stages.push({
      mark: route.key === undefined ? '✗' : '✓',
      text: route.key === undefined ? 'no route' : `route ${routeName(route.key)}`,
    });
  const shown = policies.filter(({ phase }) => !LISTENER.has(phase));
  const decided = shown.findIndex(({ outcome }) => decides(outcome));
  for (const [index, policy] of shown.entries())
    stages.push({ mark: markOf(policy, decided !== -1 && index > decided, isOver), text: policy.name });
  if (backend !== undefined) stages.push({ mark: backendMark(trace), text: backend.target || 'backend' });
  else if (route?.key !== undefined) stages.push({ mark: isOver ? '○' : '…', text: 'backend' });
  return stages;
}

/** Shortens a key such as `gateway/edge/default/tools` to the name of the route, `tools`. */
const routeName = (key: string): string => key.slice(key.lastIndexOf('/') + 1) || key;

const LISTENER = new Set(['frontend', 'listenerFrontend', 'listener']);

function markOf({ outcome }: TracePolicy, isAfter: boolean, isOver: boolean): Mark {
  if (outcome === 'denied' || outcome === 'ended') return '✗';
  if (outcome === 'skipped') return '–';
  if (outcome !== 'in force') return '✓';
  if (isAfter) return '○';
  return isOver ? '✓' : '…';
}

function backendMark({ backend, verdict }: TraceModel): Mark {
  if (backend?.error !== undefined || (backend?.status ?? 0) >= 500) return '✗';
  if (backend?.status !== undefined) return '✓';
  return verdict === undefined ? '…' : '✓';
}

/** How the request ended and what decided that, as in `403, denied by authorization: rules[1] …`. */
export function verdictText(trace: TraceModel): string {
  const { verdict, decision, backend } = trace;
  if (verdict === undefined) return '';
  const who = decision === undefined ? backendText(backend?.target) : decidedText(trace);
  const error = decision === undefined && verdict.error !== undefined ? verdict.error : '';
  return [verdict.status === undefined ? 'no response' : String(verdict.status), error, who]
    .filter((part) => part !== '')
    .join(', ');
}

const backendText = (target: string | undefined): string =>
  target === undefined || target === '' ? '' : `answered by ${target}`;

function decidedText({ decision, policies }: TraceModel): string {
  if (decision === undefined) return '';
  if (decision.by === 'routing') return 'no route matches';
  const outcomes = policies.filter(({ name }) => name === decision.by).map(({ outcome }) => outcome);
  const how = outcomes.find((outcome) => outcome === 'denied' || outcome === 'ended') ?? 'answered';
  return `${how} by ${decision.by}${decision.reason === '' ? '' : `: ${decision.reason}`}`;
}

/** The place in the configuration that decided, or an empty text. */
export function decidingPlace({ decision }: TraceModel): string {
  return decision?.place === undefined ? '' : placeText(decision.place);
}

/** The trace in one line, printed to the terminal after the screen has closed. */
export function closingLine(trace: TraceModel): string {
  if (trace === EMPTY_TRACE || trace.steps.length === 0) return 'nothing traced';
  const place = decidingPlace(trace);
  const parts = [
    requestLine(trace.state),
    trace.route?.key === undefined ? '' : `route ${routeName(trace.route.key)}`,
    verdictText(trace) || 'not finished',
    place === '' ? '' : `(${place})`,
    durationText(lastMoment(trace)),
  ];
  return parts.filter((part) => part !== '').join('  ');
}

export function lastMoment({ steps }: TraceModel): number {
  return steps.findLast(({ message }) => message.type === 'requestFinished')?.end ?? steps.at(-1)?.end ?? 0;
}

/** Formats microseconds for display: `0.06ms`, `412ms`, `3.2s`. */
export function durationText(micros: number): string {
  if (micros >= 10_000_000) return `${(micros / 1_000_000).toFixed(1)}s`;
  return micros >= 100_000 ? `${Math.round(micros / 1000)}ms` : `${(micros / 1000).toFixed(2)}ms`;
}
