import { type ReactNode, useMemo, useState } from 'react';
import type { Column } from '../../shared/column.ts';
import { count, duration } from '../../shared/format.ts';
import { VirtualTable } from '../../shared/virtual-table.tsx';
import { visible } from '../../shared/visible.ts';
import { MARKS } from '../model/fields.ts';
import { dollars } from '../model/money.ts';
import { Fact } from '../parts/fact.tsx';
import { Drawer } from '../parts/request-drawer.tsx';
import { outcomeOfRecord, titleOf } from '../records/record.ts';
import { RecordView } from '../records/record-view.tsx';
import type { Conversation } from './load.ts';
import { MOST } from './load.ts';
import { type Step, totalsOf, waterfallOf } from './waterfall.ts';
import './sessions.css';

/** All calls of a conversation on one line of time, with what they cost. */
export function Timeline({ found }: { readonly found: Conversation }): ReactNode {
  const { records = [], byCaller, isCut } = found;
  const waterfall = useMemo(() => waterfallOf(records), [records]);
  const columns = useMemo(() => columnsOf(byCaller), [byCaller]);
  const [chosen, setChosen] = useState<string>();
  const [opened, setOpened] = useState<Step>();
  const { steps, span, busy } = waterfall;
  const at = opened === undefined ? -1 : steps.findIndex(({ record }) => record.id === opened.record.id);
  const go = (to: number): void => {
    const next = steps[to];
    if (next === undefined) return;
    setChosen(keyOf(next));
    setOpened(next);
  };
  return (
    <>
      <Sums found={found} span={span} busy={busy} />
      {isCut ? (
        <p className="panel warning">
          <span className="warn">!</span> There are more calls: these are the newest {count(MOST)}, and the
          sums are of these.
        </p>
      ) : null}
      {waterfall.hasShortened ? (
        <p className="quiet">Times in which nothing ran are drawn shorter than they were.</p>
      ) : null}
      <VirtualTable
        caption="Calls of the conversation, oldest first"
        rows={steps}
        columns={columns}
        keyOf={keyOf}
        chosen={chosen}
        choose={setChosen}
        open={(step) => {
          setChosen(keyOf(step));
          setOpened(step);
        }}
        detail={problemOf}
      />
      {opened === undefined ? null : (
        <Drawer
          title={visible(titleOf(opened.record))}
          close={() => setOpened(undefined)}
          onKeyDown={({ key }) => {
            if (key === 'j') go(at + 1);
            if (key === 'k') go(at - 1);
          }}
        >
          <div className="row bar">
            <button type="button" disabled={at <= 0} onClick={() => go(at - 1)} aria-keyshortcuts="k">
              ↑ Earlier
            </button>
            <button
              type="button"
              disabled={at >= steps.length - 1}
              onClick={() => go(at + 1)}
              aria-keyshortcuts="j"
            >
              ↓ Later
            </button>
          </div>
          <RecordView key={opened.record.id} id={opened.record.id} />
        </Drawer>
      )}
    </>
  );
}

const keyOf = ({ record }: Step): string => String(record.id);

const problemOf = ({ record: { error } }: Step): string =>
  error === undefined ? '' : visible(error).replace(/\s+/g, ' ');

function Sums({
  found: { records = [] },
  span,
  busy,
}: {
  readonly found: Conversation;
  readonly span: number;
  readonly busy: number;
}): ReactNode {
  const { models, tools, errors, refused, input, output, cost, unpriced } = totalsOf(records);
  return (
    <dl className="facts tiles" aria-label="Sums of the conversation">
      <Fact name="Calls">
        {count(records.length)}{' '}
        <small className="quiet">
          {count(models)} of models, {count(tools)} of tools
        </small>
      </Fact>
      <Fact name="Time">
        {duration(span)} <small className="quiet">{duration(busy)} of it in calls</small>
      </Fact>
      <Fact name="Errors">
        <span className={errors === 0 ? '' : 'bad'}>{errors === 0 ? '0' : `✗ ${count(errors)}`}</span>
      </Fact>
      <Fact name="Refused">
        <span className={refused === 0 ? '' : 'warn'}>{refused === 0 ? '0' : `! ${count(refused)}`}</span>
      </Fact>
      <Fact name="Tokens">
        {count(input + output)}{' '}
        <small className="quiet">
          {count(input)} in, {count(output)} out
        </small>
      </Fact>
      <Fact name="Cost">
        {cost === undefined ? 'not known' : dollars(cost)}{' '}
        {unpriced === 0 ? null : (
          <small className="warn">
            ! without {count(unpriced)} {unpriced === 1 ? 'call' : 'calls'} of unknown price
          </small>
        )}
      </Fact>
    </dl>
  );
}

const WIDE = ['tablet', 'desktop'] as const;
/** Decides how wide the drawing is. */
const ROOM = 'm'.repeat(34);
const SMALL_ROOM = 'm'.repeat(4);

function columnsOf(byCaller: ReadonlySet<number>): readonly Column<Step>[] {
  const cost = ({ record: { costUsd } }: Step): string =>
    costUsd === undefined ? '' : dollars(Number(costUsd));
  const sharedBy = ({ id, key }: Step['record']): string =>
    byCaller.has(id) ? ` same ${key === undefined ? 'user' : 'key'}` : '';
  return [
    { name: 'Start', shownOn: WIDE, cell: ({ offset }) => `+${duration(offset)}` },
    {
      name: 'Call',
      shownOn: WIDE,
      shrinks: true,
      text: ({ record }) => `✓ ${titleOf(record)}${sharedBy(record)}`,
      cell: ({ record }) => (
        <>
          <span className={outcomeOfRecord(record)}>{MARKS[outcomeOfRecord(record)]}</span>{' '}
          {visible(titleOf(record))}
          <span className="quiet">{sharedBy(record)}</span>
        </>
      ),
    },
    {
      name: 'Call',
      shownOn: ['phone'],
      shrinks: true,
      text: ({ record }) => `✓ ${nameOf(record)}`,
      cell: ({ record }) => (
        <>
          <span className={outcomeOfRecord(record)}>{MARKS[outcomeOfRecord(record)]}</span>{' '}
          {visible(nameOf(record))}
        </>
      ),
    },
    { name: 'Timeline', shownOn: WIDE, shrinks: true, text: () => ROOM, cell: (step) => <Bar step={step} /> },
    { name: 'Timeline', shownOn: ['phone'], text: () => SMALL_ROOM, cell: (step) => <Bar step={step} /> },
    { name: 'Took', isNumber: true, cell: ({ record }) => duration(record.durationMs ?? 0) },
    {
      name: 'Tokens',
      shownOn: WIDE,
      isNumber: true,
      cell: ({ record: { inputTokens = 0, outputTokens = 0 } }) =>
        inputTokens + outputTokens === 0 ? '' : `${count(inputTokens)} → ${count(outputTokens)}`,
    },
    { name: 'Cost', isNumber: true, cell: cost },
  ];
}

/** The shortest name of a call: that of its tool or model, for a phone. */
const nameOf = ({ tool, model, operation }: Step['record']): string => tool ?? model ?? operation;

/** When the call ran. The columns beside it have the same in numbers. */
function Bar({ step: { record, left, width } }: { readonly step: Step }): ReactNode {
  const kind = outcomeOfRecord(record) === 'bad' ? 'bad' : record.protocol === 'llm' ? 'model' : 'tool';
  return (
    <span className="lane" aria-hidden="true">
      <span
        className={`bar-of-call ${kind}`}
        style={{ insetInlineStart: `${left * 100}%`, width: `max(3px, ${width * 100}%)` }}
      />
    </span>
  );
}
