import { membersOf } from '../foreign.ts';
import type { TraceModel, TraceStep } from '../trace-model.ts';

/**
 * Whether a step is a problem for its request. A missing price catalog is a warning on the wire, as upstream defines
 * it, but does not concern the request: it neither affects the outcome nor needs attention.
 */
export function problemOf({ severity, message }: TraceStep): 'warn' | 'error' | undefined {
  if (message.type === 'policyEvent' && message['kind'] === 'llm_cost' && severity === 'warn') {
    if (membersOf(message['details'])['status'] === 'noCatalog') return undefined;
  }
  return severity === 'warn' || severity === 'error' ? severity : undefined;
}

/** The step to select when a trace is complete: the first error, the first warning, or the end of the request. */
export function stepToShow(steps: TraceModel['steps']): number {
  const error = steps.findIndex((step) => problemOf(step) === 'error');
  if (error !== -1) return error;
  const warning = steps.findIndex((step) => problemOf(step) === 'warn');
  if (warning !== -1) return warning;
  const end = steps.findLastIndex(({ message }) => message.type === 'requestFinished');
  return end === -1 ? steps.length - 1 : end;
}
