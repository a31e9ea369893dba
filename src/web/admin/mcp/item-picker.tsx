import { type FormEvent, type ReactNode, useState } from 'react';
import { type Tab, Tabs } from '../../shared/tabs.tsx';
import { visible } from '../../shared/visible.ts';
import { SendOrStop } from '../playground/send-or-stop.tsx';
import { argumentsOf, fieldsOf, initialText, type Schema, SchemaForm } from './schema-form.tsx';

/** A tool, prompt or resource from a server's list. */
export interface Item {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: Schema;
  readonly uri?: string;
  readonly arguments?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly required?: boolean;
  }[];
}

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
export function ItemPicker({ items, ...sending }: { readonly items: Items } & Sending): ReactNode {
  const [view, setView] = useState<View>('tools');
  const tabs: readonly Tab<View>[] = [
    { name: 'tools', label: `Tools (${items.tools.length})` },
    { name: 'prompts', label: `Prompts (${items.prompts.length})` },
    { name: 'resources', label: `Resources (${items.resources.length})` },
    { name: 'raw', label: 'Raw JSON-RPC' },
  ];
  return (
    <div className="panel">
      <Tabs label="What to send" tabs={tabs} chosen={view} choose={setView}>
        {view === 'raw' ? (
          <Raw {...sending} />
        ) : (
          <Kind key={view} kind={view} items={items[view]} {...sending} />
        )}
      </Tabs>
    </div>
  );
}

function Kind({
  kind,
  items,
  ...sending
}: { readonly kind: ItemKind; readonly items: readonly Item[] } & Sending): ReactNode {
  const [id, setId] = useState<string>();
  const [filter, setFilter] = useState('');
  const item = items.find((each) => idOf(each) === id) ?? items[0];
  if (item === undefined) return <p className="quiet">The servers offer no {kind}.</p>;
  const wanted = filter.toLowerCase();
  const shown = items.filter((each) => `${each.name} ${each.uri ?? ''}`.toLowerCase().includes(wanted));
  return (
    <div className="picker">
      <div>
        <label>
          Filter
          <input
            type="text"
            className="filter"
            data-filter
            autoComplete="off"
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
          />
        </label>
        <ul className="plain-list items">
          {shown.map((each) => (
            <li key={idOf(each)}>
              <button
                type="button"
                className="plain"
                aria-current={each === item ? 'true' : undefined}
                onClick={() => setId(idOf(each))}
              >
                {visible(each.name)}
              </button>
            </li>
          ))}
        </ul>
        {shown.length === 0 ? <p className="quiet">None of the {items.length} fits.</p> : null}
      </div>
      <ItemForm key={idOf(item)} kind={kind} item={item} {...sending} />
    </div>
  );
}

let count = 0;

function ItemForm({
  kind,
  item,
  isRunning,
  send,
  stop,
}: { readonly kind: ItemKind; readonly item: Item } & Sending): ReactNode {
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
      setProblem((error as Error).message);
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
      {problem === '' ? null : (
        <p role="alert" className="bad">
          ✗ {visible(problem)}
        </p>
      )}
      <div className="row">
        <SendOrStop verb={verb} isRunning={isRunning} stop={stop} />
      </div>
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
      const message: unknown = JSON.parse(text);
      setProblem('');
      send(message);
    } catch (error) {
      setProblem(`This is not valid JSON: ${(error as Error).message}`);
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
      {problem === '' ? null : (
        <p role="alert" className="bad">
          ✗ {visible(problem)}
        </p>
      )}
      <div className="row">
        <SendOrStop verb="Send" isRunning={isRunning} stop={stop} />
      </div>
    </form>
  );
}
