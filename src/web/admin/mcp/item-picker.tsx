import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { messageOf } from '../../../core/errors.ts';
import { parseJson } from '../../../core/foreign.ts';
import { Failure } from '../../shared/form.tsx';
import { useLocation } from '../../shared/router.tsx';
import { type Tab, Tabs } from '../../shared/tabs.tsx';
import { visible } from '../../shared/visible.ts';
import type { Endpoint } from '../playground/endpoints.ts';
import { SendOrStop } from '../playground/send-or-stop.tsx';
import { groupsOf, matching, targetOfItem, withoutTarget } from './groups.ts';
import type { Item } from './item.ts';
import { argumentsOf, fieldsOf, initialText, type Schema, SchemaForm } from './schema-form.tsx';
import { ToolFacts } from './tool-facts.tsx';

export type ItemKind = 'tools' | 'prompts' | 'resources';

/** The request for each kind of item, and its arguments. */
const CALLS: Readonly<
  Record<ItemKind, { readonly method: string; readonly verb: string; readonly one: string }>
> = {
  tools: { method: 'tools/call', verb: 'Call', one: 'tool' },
  prompts: { method: 'prompts/get', verb: 'Get', one: 'prompt' },
  resources: { method: 'resources/read', verb: 'Read', one: 'resource' },
};

const idOf = ({ uri, name }: Item): string => uri ?? name;

/** The schema for the form of an item. */
function schemaOf(kind: ItemKind, item: Item): Schema | undefined {
  if (kind === 'tools') return item.inputSchema;
  if (kind === 'resources') return undefined;
  const list = item.arguments ?? [];
  return {
    properties: Object.fromEntries(
      list.map(({ name, description }) => [
        name,
        { type: 'string', ...(description === undefined ? {} : { description }) },
      ]),
    ),
    required: list.filter(({ required }) => required === true).map(({ name }) => name),
  };
}

function paramsOf(kind: ItemKind, item: Item, values: Readonly<Record<string, unknown>>): object {
  return kind === 'resources' ? { uri: item.uri } : { name: item.name, arguments: values };
}

export type Items = Readonly<Record<ItemKind, readonly Item[]>>;

interface Sending {
  readonly isRunning: boolean;
  readonly send: (request: unknown) => void;
  readonly stop: () => void;
}

type View = ItemKind | 'raw';

/** All items that the servers offer, by kind, and custom messages. */
export function ItemPicker({
  items,
  targets,
  endpoint,
  opened,
  ...sending
}: {
  readonly items: Items;
  /** Names of the targets, in the order of the configuration. */
  readonly targets: readonly string[];
  readonly endpoint: Endpoint;
  /** A tool that was opened elsewhere; `round` tells that it was opened again. */
  readonly opened: { readonly item: Item; readonly round: number } | undefined;
} & Sending): ReactNode {
  const [view, setView] = useState<View>('tools');
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (opened === undefined) return;
    setView('tools');
    panel.current?.scrollIntoView({ block: 'start' });
    panel.current?.focus({ preventScroll: true });
  }, [opened]);
  // The command palette and the Overview lead to a target.
  const start = useLocation().query.get('target') ?? '';
  const tabs: readonly Tab<View>[] = [
    { name: 'tools', label: `Tools (${items.tools.length})` },
    { name: 'prompts', label: `Prompts (${items.prompts.length})` },
    { name: 'resources', label: `Resources (${items.resources.length})` },
    { name: 'raw', label: 'Raw JSON-RPC' },
  ];
  return (
    <div ref={panel} className="panel" tabIndex={-1}>
      <Tabs label="What to send" tabs={tabs} chosen={view} choose={setView}>
        {view === 'raw' ? (
          <Raw {...sending} />
        ) : (
          <Kind
            key={`${view} ${start} ${view === 'tools' ? (opened?.round ?? '') : ''}`}
            kind={view}
            items={items[view]}
            targets={targets}
            start={start}
            first={view === 'tools' ? opened?.item : undefined}
            endpoint={endpoint}
            {...sending}
          />
        )}
      </Tabs>
    </div>
  );
}

function Kind({
  kind,
  items,
  targets,
  start,
  first: opened,
  endpoint,
  ...sending
}: {
  readonly kind: ItemKind;
  readonly items: readonly Item[];
  readonly targets: readonly string[];
  /** The target that is shown first, and the item. */
  readonly start: string;
  readonly first: Item | undefined;
  readonly endpoint: Endpoint;
} & Sending): ReactNode {
  const [id, setId] = useState(opened === undefined ? undefined : idOf(opened));
  const [text, setText] = useState('');
  const groups = groupsOf(items, targets);
  const first = groups.find(({ target }) => target === start) ?? groups[0];
  const item = items.find((each) => idOf(each) === id) ?? first?.items[0];
  if (item === undefined) return <p className="quiet">The servers offer no {kind}.</p>;
  const shown = groups
    .map(({ target, items: own }) => ({ target, items: matching(own, text), all: own.length }))
    .filter((group) => group.items.length > 0);
  return (
    <div className="picker">
      <div>
        <label>
          Search {kind}
          <input
            type="search"
            className="filter"
            data-filter
            autoComplete="off"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <div className="items">
          {shown.map(({ target, items: own, all }) => (
            <details key={target} open>
              <summary>
                {target === '' ? 'any target' : visible(target)}{' '}
                <span className="quiet">{own.length === all ? all : `${own.length} of ${all}`}</span>
              </summary>
              <Names kind={kind} target={target} items={own} chosen={item} choose={setId} />
            </details>
          ))}
        </div>
        {shown.length === 0 ? <p className="quiet">None of the {items.length} matches.</p> : null}
      </div>
      <ItemForm key={idOf(item)} kind={kind} item={item} {...sending}>
        {kind === 'tools' ? (
          <ToolFacts
            item={item}
            endpoint={endpoint}
            target={targetOfItem(item, targets)}
            own={withoutTarget(item.name, targetOfItem(item, targets))}
          />
        ) : null}
      </ItemForm>
    </div>
  );
}

function Names({
  kind,
  target,
  items,
  chosen,
  choose,
}: {
  readonly kind: ItemKind;
  readonly target: string;
  readonly items: readonly Item[];
  readonly chosen: Item;
  readonly choose: (id: string) => void;
}): ReactNode {
  return (
    <ul className="plain-list">
      {items.map((item) => (
        <li key={idOf(item)}>
          <button
            type="button"
            className="plain"
            aria-current={item === chosen ? 'true' : undefined}
            title={item.description === undefined ? undefined : visible(item.description)}
            onClick={() => choose(idOf(item))}
          >
            {visible(kind === 'resources' ? item.name : withoutTarget(item.name, target))}
            {item.description === undefined ? null : (
              <small aria-hidden="true">{visible(item.description)}</small>
            )}
          </button>
        </li>
      ))}
    </ul>
  );
}

let count = 0;

function ItemForm({
  kind,
  item,
  isRunning,
  send,
  stop,
  children,
}: {
  readonly kind: ItemKind;
  readonly item: Item;
  /** What is known of it, below its form. */
  readonly children: ReactNode;
} & Sending): ReactNode {
  const fields = fieldsOf(schemaOf(kind, item));
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(fields.map((field) => [field.name, initialText(field)])),
  );
  const [problem, setProblem] = useState('');
  const { method, verb, one } = CALLS[kind];
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    try {
      const params = paramsOf(kind, item, argumentsOf(fields, texts));
      count += 1;
      setProblem('');
      send({ jsonrpc: '2.0', id: count, method, params });
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <form className="item" onSubmit={submit} aria-label={`${one} ${item.name}`}>
      <h2>{visible(item.name)}</h2>
      {item.uri === undefined ? null : <p className="mono">{visible(item.uri)}</p>}
      {item.description === undefined ? null : <p>{visible(item.description)}</p>}
      {kind === 'resources' ? null : (
        <SchemaForm
          fields={fields}
          texts={texts}
          change={(name, text) => setTexts((before) => ({ ...before, [name]: text }))}
        />
      )}
      <Failure text={problem} />
      <div className="row">
        <SendOrStop verb={verb} isRunning={isRunning} stop={stop} />
      </div>
      {children}
    </form>
  );
}

const FIRST = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, null, 2);

function Raw({ isRunning, send, stop }: Sending): ReactNode {
  const [text, setText] = useState(FIRST);
  const [problem, setProblem] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    try {
      const message = parseJson(text);
      setProblem('');
      send(message);
    } catch (error) {
      setProblem(`This is not valid JSON: ${messageOf(error)}`);
    }
  };
  return (
    <form onSubmit={submit}>
      <label>
        Message
        <textarea
          className="mono wide-field"
          rows={8}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <Failure text={problem} />
      <div className="row">
        <SendOrStop verb="Send" isRunning={isRunning} stop={stop} />
      </div>
    </form>
  );
}
