import type { ReactNode } from 'react';
import { counted, duration, periodName } from '../../shared/format.ts';
import './health.css';

/** Calls of one bucket of a period. */
export interface Bucket {
  readonly calls: number;
  readonly errors: number;
  /** ms; undefined if it is not known. */
  readonly p95: number | undefined;
}

/** From this share of errors on, a bucket counts as down. */
const DOWN = 0.5;

const toneOf = ({ calls, errors }: Bucket): string => {
  if (calls === 0) return 'none';
  if (errors === 0) return 'up';
  return errors / calls >= DOWN ? 'down' : 'part';
};

const saidOf = ({ calls, errors, p95 }: Bucket): string =>
  `${counted(calls, 'call')}, ${counted(errors, 'error')}${p95 === undefined ? '' : `, p95 ${duration(p95)}`}`;

/** What became of the calls over a period, one field for each bucket. Their height tells fields apart without colours. */
export function Strip({
  buckets,
  from,
  step,
}: {
  readonly buckets: readonly Bucket[];
  /** Start of the first bucket, and length of one, in ms. */
  readonly from: number;
  readonly step: number;
}): ReactNode {
  const used = buckets.filter(({ calls }) => calls > 0);
  const bad = used.filter(({ errors }) => errors > 0);
  return (
    <span
      className="strip"
      role="img"
      aria-label={
        used.length === 0
          ? 'no calls in this period'
          : `errors in ${bad.length} of ${counted(used.length, 'part')} of the period with calls`
      }
    >
      {buckets.map((bucket, at) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: a bucket is identified by its position.
          key={at}
          className={toneOf(bucket)}
          title={`${periodName(from + at * step, from + (at + 1) * step)}: ${saidOf(bucket)}`}
        />
      ))}
    </span>
  );
}
