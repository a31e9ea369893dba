import { Fragment, type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from 'react';
import { CopyButton } from '../../shared/copy.tsx';
import { time as timeText } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { field } from '../model/fields.ts';
import type { Entry } from '../model/requests.ts';
import './request-drawer.css';

/** Specified fields that a request may lack: displayed as absent, so that users need not search for them. */
const ALWAYS = [
  'gateway',
  'listener',
  'route',
  'endpoint',
  'src.addr',
  'http.method',
  'http.host',
  'http.path',
  'http.version',
  'http.status',
  'protocol',
  'duration',
  'error',
];
const OF_LLM = [
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.response.model',
  'gen_ai.usage.input_tokens',
  'gen_ai.usage.output_tokens',
  'gw.ai.usage.cost.total',
];

const OUTCOME = 'Outcome';

/** What one looks for first is first. A field is in the first group whose pattern matches its name. */
const GROUPS: readonly { readonly title: string; readonly pattern: RegExp }[] = [
  { title: OUTCOME, pattern: /^(?:http\.status|duration|error|reason|error\..*|protocol)$/ },
  { title: 'MCP', pattern: /^(?:mcp\.|gen_ai\.(?:tool|prompt)\.)/ },
  { title: 'Model, tokens and cost', pattern: /^(?:gen_ai\.|gw\.ai\.)/ },
  { title: 'Request', pattern: /^(?:http\.|src\.|caller\.|jwt\.|user_agent)/ },
  {
    title: 'Way through the gateway',
    pattern: /^(?:gateway|listener|route|endpoint|retry|backend|upstream)/,
  },
  { title: 'Other fields', pattern: /^/ },
];

const groupOf = (name: string): string | undefined => GROUPS.find(({ pattern }) => pattern.test(name))?.title;

/** All access-log fields of a request. */
export function RequestDrawer({
  entry,
  close,
  newer,
  older,
}: {
  readonly entry: Entry;
  readonly close: () => void;
  readonly newer: (() => void) | undefined;
  readonly older: (() => void) | undefined;
}): ReactNode {
  const { fields, time } = entry;
  const isLlm = fields['gen_ai.operation.name'] !== undefined;
  const always = isLlm ? [...ALWAYS, ...OF_LLM] : ALWAYS;
  const names = [...new Set([...Object.keys(fields), ...always])];
  const groups = GROUPS.map(({ title }) => ({
    title,
    names: names.filter((name) => groupOf(name) === title),
  }));
  const text = (): string => JSON.stringify({ time, ...fields }, null, 2);
  return (
    <Drawer
      title={`${field(entry, 'http.method')} ${field(entry, 'http.path')}`}
      close={close}
      onKeyDown={({ key }) => {
        if (key === 'j') older?.();
        if (key === 'k') newer?.();
      }}
    >
      <div className="row bar">
        <button type="button" disabled={newer === undefined} onClick={newer} aria-keyshortcuts="k">
          ↑ Newer
        </button>
        <button type="button" disabled={older === undefined} onClick={older} aria-keyshortcuts="j">
          ↓ Older
        </button>
        <CopyButton text={text}>Copy as JSON</CopyButton>
        <Link to="/trace" query={{ expression: expressionLike(entry), start: '1' }}>
          Trace the next one like this
        </Link>
      </div>
      <table className="fields">
        <caption className="unseen">Fields of the access log</caption>
        {groups.map((group) =>
          group.names.length === 0 ? null : (
            <tbody key={group.title}>
              <tr>
                <th scope="rowgroup" colSpan={2} className="group">
                  {group.title}
                </th>
              </tr>
              {group.title !== OUTCOME ? null : (
                <tr>
                  <th scope="row">time</th>
                  <td>
                    {timeText(time)} <span className="quiet whole">{time}</span>
                  </td>
                </tr>
              )}
              {group.names.map((name) => (
                <Field key={name} name={name} entry={entry} />
              ))}
            </tbody>
          ),
        )}
      </table>
    </Drawer>
  );
}

function Field({ name, entry }: { readonly name: string; readonly entry: Entry }): ReactNode {
  return (
    <tr>
      <th scope="row">
        {/* A long name is wrapped after a dot or underscore, not within a word. */}
        {name.split(/(?<=[._])/).map((part, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a part is identified by its position.
          <Fragment key={index}>
            {part}
            <wbr />
          </Fragment>
        ))}
      </th>
      <td className="mono">
        {entry.fields[name] === undefined ? <span className="quiet">–</span> : field(entry, name)}
      </td>
    </tr>
  );
}

/** A CEL expression that matches requests to the same path. */
export function expressionLike({ fields }: Entry): string {
  const path = String(fields['http.path'] ?? '/').replace(/\?.*/, '');
  return `request.method == ${JSON.stringify(fields['http.method'] ?? '')} && request.path == ${JSON.stringify(path)}`;
}

/**
 * A modal dialog at the side, with details of a selected item. The browser traps the focus, closes the dialog on
 * Escape, and restores the focus.
 */
export function Drawer({
  title,
  close,
  onKeyDown,
  children,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  readonly children: ReactNode;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} className="drawer" aria-labelledby={id} onClose={close} onKeyDown={onKeyDown}>
      <div className="drawer-head">
        <h2 id={id}>{title}</h2>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
      {children}
    </dialog>
  );
}
