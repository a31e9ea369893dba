import type { TraceModel, TraceStep } from '../trace-model.ts';

/**
 * How bad a step is for its request. That no price list is configured is a warning on the wire, as upstream has it,
 * and yet says nothing about the request: it neither decides the outcome nor asks to be looked at.
 */
export function problemOf({ severity, message }: TraceStep): 'warn' | 'error' | undefined {
  if (message.type === 'policyEvent' && message['kind'] === 'llm_cost' && severity === 'warn') {
    const { details } = message;
    if ((details as { status?: unknown } | null | undefined)?.status === 'noCatalog') return undefined;
  }
  return severity === 'warn' || severity === 'error' ? severity : undefined;
}

/** The step to look at once a trace is complete: the first error, the first warning, or how the request ended. */
export function stepToShow(steps: TraceModel['steps']): number {
  const error = steps.findIndex((step) => problemOf(step) === 'error');
  if (error !== -1) return error;
  const warning = steps.findIndex((step) => problemOf(step) === 'warn');
  if (warning !== -1) return warning;
  const end = steps.findLastIndex(({ message }) => message.type === 'requestFinished');
  return end === -1 ? steps.length - 1 : end;
}
