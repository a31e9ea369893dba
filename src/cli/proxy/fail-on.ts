import { problemOf } from '../../core/trace/problem.ts';
import type { TraceModel } from '../../core/trace-model.ts';

/** Conditions of `--fail-on`. */
export type FailOn = 'warn' | 'error' | 'deny' | '4xx' | '5xx' | 'cel-error' | 'no-route';

export const FAIL_ON: readonly FailOn[] = ['warn', 'error', 'deny', '4xx', '5xx', 'cel-error', 'no-route'];

/** Whether a trace meets `condition`; `warn` includes errors. */
export function matches(trace: TraceModel, condition: FailOn): boolean {
  const status = trace.verdict?.status ?? 0;
  switch (condition) {
    case 'warn':
      return trace.steps.some((step) => problemOf(step) !== undefined);
    case 'error':
      return trace.steps.some((step) => problemOf(step) === 'error');
    case 'deny':
      return trace.policies.some(({ outcome }) => outcome === 'denied');
    case '4xx':
      return status >= 400 && status < 500;
    case '5xx':
      return status >= 500;
    case 'cel-error':
      return trace.hasCelError;
    case 'no-route':
      return trace.route !== undefined && trace.route.key === undefined;
  }
}
