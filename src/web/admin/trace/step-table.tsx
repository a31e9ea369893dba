import { type ReactNode, useEffect, useRef } from 'react';
import { durationText, lastMoment } from '../../../core/trace/verdict.ts';
import type { TraceModel, TraceStep } from '../../../core/trace-model.ts';
import { visible } from '../../shared/visible.ts';

/** Maximum number of steps on the page. */
const MOST = 1_000;

/** The steps of a trace in order, with time and duration. */
export function StepTable({
  model,
  steps,
  chosen,
  choose,
}: {
  readonly model: TraceModel;
  readonly steps: readonly TraceStep[];
  readonly chosen: number | undefined;
  readonly choose: (step: number) => void;
}): ReactNode {
  const whole = Math.max(1, lastMoment(model));
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const list = box.current;
    const row = list?.querySelector<HTMLElement>(`[data-step="${chosen}"]`);
    if (list === null || !row) return;
    // Scrolls only the list; the page does not move.
    const bottom = row.offsetTop + row.offsetHeight;
    if (row.offsetTop < list.scrollTop) list.scrollTop = row.offsetTop;
    else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
  }, [chosen]);
  return (
    <div ref={box} className="steps scroll">
      <table>
        <caption className="unseen">Steps of the request</caption>
        <thead>
          <tr>
            <th scope="col" className="number">
              ms
            </th>
            <th scope="col">Step</th>
            <th scope="col" className="wide waterfall">
              0 – {durationText(whole)}
            </th>
          </tr>
        </thead>
        <tbody>
          {steps.slice(0, MOST).map((step) => (
            <Row
              key={step.number}
              step={step}
              whole={whole}
              isChosen={step.number === chosen}
              choose={choose}
            />
          ))}
        </tbody>
      </table>
      {steps.length > MOST ? <p>{steps.length - MOST} more steps are in the file that Save writes.</p> : null}
    </div>
  );
}

function Row({
  step,
  whole,
  isChosen,
  choose,
}: {
  readonly step: TraceStep;
  readonly whole: number;
  readonly isChosen: boolean;
  readonly choose: (step: number) => void;
}): ReactNode {
  const { number, label, summary, start, end, scope } = step;
  const { mark, tone, word } = signOf(step);
  const from = start ?? end;
  return (
    <tr data-step={number} className={isChosen ? 'chosen' : ''} onClick={() => choose(number)}>
      <td className="number mono">{(from / 1000).toFixed(2)}</td>
      <td>
        <button
          type="button"
          className="plain step"
          aria-current={isChosen ? 'step' : undefined}
          onClick={() => choose(number)}
        >
          <span className={tone}>
            <span aria-hidden="true">{mark}</span>
            <span className="unseen">{word}</span> <strong>{visible(label)}</strong>
          </span>{' '}
          {scope.length === 0 ? null : <span className="quiet">{visible(scope.join(' › '))}: </span>}
          {visible(summary)}
        </button>
      </td>
      <td className="wide waterfall">
        {start === undefined ? (
          <span className="quiet moment" style={{ marginInlineStart: share(end, whole) }}>
            ·
          </span>
        ) : (
          <>
            <span
              className="bar-of"
              style={{ marginInlineStart: share(start, whole), width: share(end - start, whole) }}
            />
            <span className="quiet took">{durationText(end - start)}</span>
          </>
        )}
      </td>
    </tr>
  );
}

/** Share of the column's width; a quarter is reserved for the duration of the last step. */
const share = (part: number, whole: number): string => `${(Math.min(1, part / whole) * 75).toFixed(2)}%`;

function signOf({ severity, isSkip }: Pick<TraceStep, 'severity' | 'isSkip'>): {
  readonly mark: string;
  readonly tone: string;
  readonly word: string;
} {
  if (severity === 'error') return { mark: '✗', tone: 'bad', word: 'error' };
  if (severity === 'warn') return { mark: '!', tone: 'warn', word: 'warning' };
  if (isSkip) return { mark: '–', tone: 'quiet', word: 'skipped' };
  return { mark: '✓', tone: 'good', word: '' };
}
