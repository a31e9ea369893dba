import { useApp } from 'ink';
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { fieldText, type RequestFields } from '../../../core/requests/finished.ts';
import type { Key } from '../keys.ts';
import { Rows } from '../rows.tsx';
import { useScreenInput } from '../screen-input.ts';
import { TraceApp } from '../trace-app.tsx';
import { TraceStore } from '../trace-store.ts';
import { requestDetails } from './top-details.ts';
import { type HasTrace, pageOf, topRows } from './top-screen.ts';
import type { TopStore } from './top-store.ts';
import { FIRST_TOP, pressTop, selectedRow, type TableRow, type TopUi, tableRows } from './top-ui.ts';

interface Props {
  readonly store: TopStore;
  readonly hasColor: boolean;
  /** Copies a text to the clipboard of the user's terminal; returns a note. */
  readonly copy: (text: string) => string;
  /** Folder that traces are saved in. */
  readonly cwd: string;
}

/** The screen of `agctl top`, and the trace screen of one request that opens over it. */
export function TopApp({ store, hasColor, copy, cwd }: Props): ReactNode {
  const [trace, setTrace] = useState<TraceStore>();
  // Kept here, so that the list is unchanged after a trace.
  const ui = useRef(FIRST_TOP);
  if (trace === undefined)
    return (
      <TopList
        store={store}
        hasColor={hasColor}
        copy={copy}
        kept={ui}
        trace={(row) => setTrace(opened(store, row, cwd))}
      />
    );
  return (
    <TraceApp
      store={trace}
      hasColor={hasColor}
      copy={(text) => trace.note(copy(text))}
      leave={() => {
        trace.stop();
        setTrace(undefined);
      }}
    />
  );
}

interface ListProps extends Omit<Props, 'cwd'> {
  readonly kept: { current: TopUi };
  readonly trace: (row: TableRow | undefined) => void;
}

function TopList({ store, hasColor, copy, kept, trace }: ListProps): ReactNode {
  const current = useSyncExternalStore(store.subscribe, store.view);
  const clock = useClock();
  const [, draw] = useState(0);
  const { exit } = useApp();
  const at = (ui: TopUi) => ui.paused ?? { view: current, now: clock - current.skew };
  const handle = (key: Key): void => {
    const { view, now } = at(kept.current);
    const before = kept.current;
    const width = size.columns;
    const { ui, action } = pressTop(before, key, { view, now, page: pageOf(size, before), width });
    kept.current = ui;
    draw((count) => count + 1);
    if (current.note !== '') store.note('');
    const rows = tableRows(ui, view, now, width);
    const row = rows[selectedRow(ui, rows)];
    if (action === 'quit') exit();
    else if (action === 'trace') trace(row);
    else if (action === 'record') store.toggleRecording();
    else if (action === 'copy' && row !== undefined && 'row' in row)
      store.note(
        copy(
          requestDetails(row.row, false, Number.POSITIVE_INFINITY)
            .map(({ text }) => text)
            .join('\n'),
        ),
      );
  };
  const size = useScreenInput(handle);
  const { view, now } = at(kept.current);
  // What the gateway is doing, and notes, are shown even if the list is stopped.
  const { phase, problem, note, isRecording } = current;
  const shown = { ...view, phase, problem, note, isRecording };
  const hasTrace: HasTrace = (row) => recordedOf(store, row) !== undefined;
  return <Rows rows={topRows(shown, kept.current, size, now, hasTrace)} size={size} hasColor={hasColor} />;
}

const recordedOf = (store: TopStore, row: TableRow | undefined) =>
  row !== undefined && 'row' in row && row.row.request !== undefined
    ? store.traces.of(row.row.request)
    : undefined;

/** The trace of a request if it was recorded; else a trace of the next request like it. */
function opened(store: TopStore, row: TableRow | undefined, cwd: string): TraceStore {
  const plan = { form: 'screen', count: 1, failOn: [], save: undefined } as const;
  const recorded = recordedOf(store, row);
  if (recorded !== undefined) {
    const saved = new TraceStore({ ...plan, source: { file: `a request of ${store.address.shown}` } }, cwd);
    saved.show([recorded.model], recorded.texts);
    return saved;
  }
  const match = row !== undefined && 'row' in row ? likeIt(row.row.fields) : undefined;
  const request = { match, own: undefined, port: undefined, wait: undefined };
  const next = new TraceStore({ ...plan, source: { address: store.address, request } }, cwd);
  void next.next();
  return next;
}

/** An expression that is true for requests with the same method and path. */
function likeIt(fields: RequestFields): string | undefined {
  const [method, target] = [fieldText(fields, 'http.method'), fieldText(fields, 'http.path')];
  const path = target.split('?')[0] ?? '';
  if (method === '' || path === '') return undefined;
  // JSON strings are CEL strings.
  return `request.method == ${JSON.stringify(method)} && request.path == ${JSON.stringify(path)}`;
}

/** The time in ms since 1970, updated every second. */
function useClock(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
