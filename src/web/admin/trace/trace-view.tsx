import { type ReactNode, useEffect, useRef, useState } from 'react';
import { problemOf, stepToShow } from '../../../core/trace/problem.ts';
import { requestLine, sourceOf } from '../../../core/trace/request-line.ts';
import {
  decidingPlace,
  durationText,
  lastMoment,
  stagesOf,
  verdictText,
} from '../../../core/trace/verdict.ts';
import type { TraceModel, TraceStep } from '../../../core/trace-model.ts';
import { download } from '../../shared/download.ts';
import { useShortcuts } from '../../shared/shortcuts.tsx';
import { visible } from '../../shared/visible.ts';
import { type DetailView, StepDetail, VIEWS } from './step-detail.tsx';
import type { KeptTrace } from './traces.ts';
import './trace.css';

/** One trace: its outcome and what decided it, its stages, its steps. */
export function TraceView({ trace }: { readonly trace: KeptTrace }): ReactNode {
  const { model } = trace;
  const [isFolded, setFolded] = useState(false);
  const [picked, setPicked] = useState<number>();
  const [view, setView] = useState<DetailView>('why');
  const steps = isFolded ? model.steps.filter(({ message }) => message.type !== 'cel') : model.steps;
  const chosen = picked ?? model.steps[stepToShow(model.steps)]?.number;
  const step = model.steps.find(({ number }) => number === chosen);
  const go = (by: number): void => {
    const at = steps.findIndex(({ number }) => number === chosen);
    const next = steps[Math.min(Math.max(0, at + by), steps.length - 1)];
    if (next !== undefined) setPicked(next.number);
  };
  const toProblem = (): void => {
    const isProblem = (one: (typeof steps)[number]): boolean => problemOf(one) !== undefined;
    const next = steps.find((one) => one.number > (chosen ?? 0) && isProblem(one)) ?? steps.find(isProblem);
    if (next !== undefined) setPicked(next.number);
  };
  const saveFile = (): void => save(trace);
  const fold = (): void => setFolded(!isFolded);
  useShortcuts([
    { keys: 'j', what: 'next step', run: () => go(1) },
    { keys: 'k', what: 'step before', run: () => go(-1) },
    { keys: '!', what: 'next problem', run: toProblem },
    { keys: '.', what: 'show or hide expressions', run: fold },
    { keys: 'w', what: 'save the trace', run: saveFile },
    ...VIEWS.map(({ key, label, name }) => ({ keys: key, what: `view: ${label}`, run: () => setView(name) })),
  ]);
  return (
    <article aria-label="Trace">
      <Verdict trace={trace} />
      <ol className="ribbon" aria-label="Stages of the request">
        {stagesOf(model).map(({ mark, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a stage is identified by its position.
          <li key={index} className={TONES[mark] ?? ''}>
            {mark} {visible(text)}
          </li>
        ))}
      </ol>
      <div className="row bar">
        <button type="button" onClick={saveFile} aria-keyshortcuts="w">
          Save
        </button>
        <button type="button" onClick={toProblem} aria-keyshortcuts="!">
          Next problem
        </button>
        <button type="button" aria-pressed={isFolded} onClick={fold} aria-keyshortcuts=".">
          Hide expressions
        </button>
        <span className="quiet">
          {model.steps.length} steps{model.dropped === 0 ? '' : `, ${model.dropped} lost`}
        </span>
      </div>
      <div className="trace-panes">
        <StepTable model={model} steps={steps} chosen={chosen} choose={setPicked} />
        {step === undefined ? null : <StepDetail step={step} view={view} setView={setView} />}
      </div>
    </article>
  );
}

const TONES: Readonly<Record<string, string>> = { '✓': 'good', '✗': 'bad', '!': 'warn' };

function Verdict({ trace }: { readonly trace: KeptTrace }): ReactNode {
  const { model, state } = trace;
  const place = decidingPlace(model);
  const source = sourceOf(model.state);
  const verdict = verdictText(model);
  const detail = model.verdict?.detail ?? '';
  return (
    <header className="verdict">
      <h2>{visible(requestLine(model.state)) || 'Request'}</h2>
      <p>
        <strong className={toneOf(model)}>{visible(verdict) || STATES[state]}</strong>{' '}
        {place === '' ? null : <code>{visible(place)}</code>}{' '}
        <span className="quiet">
          {durationText(lastMoment(model))}
          {source === '' ? '' : `, from ${visible(source)}`}
          {trace.file === undefined ? '' : `, ${visible(trace.file)}`}
        </span>
      </p>
      {detail === '' || verdict.includes(detail) ? null : <p>{visible(detail)}</p>}
      {state === 'cut' ? (
        <p className="warn">
          ! The trace ended before the request did: the gateway stopped, or the file was truncated.
        </p>
      ) : null}
    </header>
  );
}

const STATES = { live: 'in progress …', done: 'done', cut: 'no end seen' } as const;

export function toneOf({ verdict }: TraceModel): string {
  const { status = 0, error } = verdict ?? {};
  if (verdict === undefined) return 'quiet';
  if (error !== undefined || status >= 500) return 'bad';
  return status >= 400 ? 'warn' : 'good';
}

function save({ lines, at, file }: KeptTrace): void {
  const time = new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
  download(file ?? `trace-${time}.jsonl`, `${lines.join('\n')}\n`, 'application/jsonl');
}

/** Maximum number of steps on the page. */
const MOST = 1_000;

/** The steps of a trace in order, with time and duration. */
function StepTable({
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
