import { type ComponentType, type FormEvent, type ReactNode, useRef, useState } from 'react';
import type { ShownBound } from '../../../core/overview.ts';
import { ask } from '../../shared/api.ts';
import { count, counted, time } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { say } from '../../shared/toasts.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { uptimeText, useOverview } from '../model/overview.ts';
import { Fact } from '../parts/fact.tsx';
import { NeedsRole, roleText, useCaller } from '../parts/role.tsx';
import { LogLevel } from '../system/log-level.tsx';
import { Profiles } from '../system/profiles.tsx';

const EVERY = 5_000;

/** The process: version, resource usage and limits, and diagnostics. */
export function System(): ReactNode {
  return (
    <>
      <Process />
      <div className="two roomy">
        <div>
          <NeedsRole needed="operator">
            <LogLevel />
          </NeedsRole>
          <Memory />
        </div>
        <div>
          <OfProcess Controls={Profiles} what="Profiles" />
          <Tasks />
          <OfProcess Controls={Shutdown} what="Stop the gateway" />
        </div>
      </div>
    </>
  );
}

/** What only the address of the admin server has; for operators. */
function OfProcess({
  what,
  Controls,
}: {
  readonly what: string;
  readonly Controls: ComponentType;
}): ReactNode {
  const caller = useCaller();
  if (caller?.isOnGateway === true)
    return (
      <section className="panel" aria-label={what}>
        <h2>{what}</h2>
        <p>
          Not from here: a gateway that serves these pages (<code>ui</code>) does not pass on what profiles or
          stops the process. Use the pages at the address of the admin server (<code>config.adminAddr</code>).
        </p>
      </section>
    );
  return (
    <NeedsRole needed="operator">
      <Controls />
    </NeedsRole>
  );
}

function Process(): ReactNode {
  const caller = useCaller();
  const { data } = useOverview();
  if (data === undefined) return null;
  const { version, machine, node, pid, uptimeSeconds, startedAt, config } = data;
  return (
    <dl className="facts">
      <Fact name="Version">agctl {version}</Fact>
      <Fact name="Node.js">{node}</Fact>
      <Fact name="Machine">{visible(machine)}</Fact>
      <Fact name="Process">{pid}</Fact>
      <Fact name="Up">{uptimeText(uptimeSeconds)}</Fact>
      <Fact name="Started">
        <span className="whole">{time(startedAt)}</span>
      </Fact>
      <Fact name="Configuration">{visible(config)}</Fact>
      {caller?.reason === undefined ? null : <Fact name="Your role">{roleText(caller)}</Fact>}
    </dl>
  );
}

interface MemoryAnswer {
  readonly allocation_stats: Readonly<Record<string, number>>;
  readonly allocator: { readonly specific: { readonly heap_size_limit: number } };
  readonly bounds: readonly ShownBound[];
}

function Memory(): ReactNode {
  const { data, error, reload } = useLoaded<MemoryAnswer>('/memory', EVERY);
  if (data === undefined)
    return error === undefined ? null : (
      <Problem title="The memory of the gateway could not be read" error={error} retry={reload} />
    );
  const { resident = 0, heap_used = 0, heap_total = 0, external = 0 } = data.allocation_stats;
  return (
    <section className="panel" aria-labelledby="memory">
      <h2 id="memory">Memory</h2>
      <dl className="facts dense">
        <Fact name="Resident">{bytesText(resident)}</Fact>
        <Fact name="Heap in use">{bytesText(heap_used)}</Fact>
        <Fact name="Heap reserved">{bytesText(heap_total)}</Fact>
        <Fact name="Heap limit">{bytesText(data.allocator.specific.heap_size_limit)}</Fact>
        <Fact name="Outside the heap">{bytesText(external)}</Fact>
      </dl>
      <h3>Buffers, queues and caches with their limits</h3>
      {[...Map.groupBy(data.bounds, ({ name }) => name.split('.')[0] ?? name)].map(([part, own]) => (
        <BoundsOf key={part} part={part} bounds={own} />
      ))}
    </section>
  );
}

/** From this share of a limit on, it is shown without being asked for. */
const NEAR = 0.8;

const shareOf = ({ used = 0, max }: ShownBound): number => (max === 0 ? 0 : used / max);

/** The limits of one part of the gateway; open if one of them is near or was reached. */
function BoundsOf({
  part,
  bounds,
}: {
  readonly part: string;
  readonly bounds: readonly ShownBound[];
}): ReactNode {
  // Those of what keeps the latest are reached in the long run.
  const toReach = bounds.filter(({ keepsLatest }) => keepsLatest !== true);
  const most = Math.max(0, ...toReach.map(shareOf));
  const dropped = bounds.reduce((sum, bound) => sum + (bound.dropped ?? 0), 0);
  const isNear = most >= NEAR || dropped > 0;
  return (
    <details className="kind-of-problem" open={isNear}>
      <summary>
        <strong>{visible(part)}</strong>{' '}
        <span className={isNear ? 'warn' : 'quiet'}>
          {counted(bounds.length, 'limit')},{' '}
          {toReach.length === 0 ? 'keeps the latest' : `at most ${Math.round(most * 100)} % in use`}
          {dropped === 0 ? '' : `, ${count(dropped)} dropped`}
        </span>
      </summary>
      <Bounds bounds={bounds} />
    </details>
  );
}

function Bounds({ bounds }: { readonly bounds: readonly ShownBound[] }): ReactNode {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col" className="number">
              In use
            </th>
            <th scope="col" className="number">
              Cap
            </th>
            <th scope="col" className="wide">
              Share
            </th>
          </tr>
        </thead>
        <tbody>
          {bounds.map(({ name, at = '', used, max, dropped = 0, keepsLatest = false }) => (
            <tr key={`${name} ${at}`}>
              <th scope="row">
                {visible(name)} <span className="quiet">{visible(at)}</span>
                {keepsLatest ? <span className="quiet"> keeps the latest</span> : null}
                {dropped === 0 ? null : <div className="bad">✗ {count(dropped)} dropped at the limit</div>}
              </th>
              <td className="number">{used === undefined ? '–' : amount(name, used)}</td>
              <td className="number">{amount(name, max)}</td>
              <td className="wide">
                {used === undefined ? null : (
                  <meter
                    min={0}
                    max={max}
                    value={used}
                    high={keepsLatest ? max : max * NEAR}
                    aria-label={`${name} ${at}: share in use`}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const amount = (name: string, value: number): string =>
  /bytes$/i.test(name) ? bytesText(value) : count(value);

function Tasks(): ReactNode {
  const { data } = useLoaded<Readonly<Record<string, readonly string[]>>>('/debug/tasks', EVERY);
  if (data === undefined) return null;
  return (
    <section className="panel" aria-labelledby="tasks">
      <h2 id="tasks">Tasks</h2>
      {Object.entries(data).map(([name, lines]) => (
        <div key={name}>
          <h3>{name}</h3>
          <pre>{visible(lines.join('\n'))}</pre>
        </div>
      ))}
    </section>
  );
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB'];

/** `512 B`, `3.2 MiB`. */
function bytesText(bytes: number): string {
  const unit = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** unit;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

const WORD = 'shutdown';

/** Stops the gateway, after a confirmation, because it cannot be started again from here. */
export function Shutdown(): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    dialog.current?.close();
    say({ text: 'The gateway stops as soon as its open requests have finished' });
    ask('/quitquitquit', { method: 'POST' }).catch((error: Error) =>
      say({ text: error.message, isBad: true }),
    );
  };
  return (
    <section className="panel" aria-labelledby="stop">
      <h2 id="stop">Stop the gateway</h2>
      <p>Open requests finish first; new ones are rejected. It cannot be started again from here.</p>
      <button
        type="button"
        onClick={() => {
          setTyped('');
          dialog.current?.showModal();
        }}
      >
        Stop …
      </button>
      <dialog ref={dialog} aria-labelledby="stop-title">
        <form onSubmit={submit}>
          <h2 id="stop-title">Stop the gateway?</h2>
          <label>
            Type <strong>{WORD}</strong> to confirm
            <input
              type="text"
              autoComplete="off"
              spellCheck={false}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          </label>
          <div className="row">
            <button type="submit" disabled={typed.trim() !== WORD}>
              Stop it
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
          </div>
        </form>
      </dialog>
    </section>
  );
}
