import type { ReactNode } from 'react';
import { Problem } from '../../shared/problem.tsx';
import type { PeriodFigures } from './use-figures.ts';

/** Shown if recorded figures could not be read. */
export function NotRead({
  figures: { isRecorded, error, reload },
}: {
  readonly figures: PeriodFigures;
}): ReactNode {
  if (!isRecorded || error === undefined) return null;
  return <Problem title="The recorded usage could not be read" error={error} retry={reload} />;
}
