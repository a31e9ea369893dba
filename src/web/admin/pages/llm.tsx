import { type KeyboardEvent, type ReactNode, useState } from 'react';
import { CopyButton } from '../../shared/copy.tsx';
import { Problem } from '../../shared/problem.tsx';
import { visible } from '../../shared/visible.ts';
import { asCurl, asSdk } from '../llm/as-code.ts';
import type { Settings, Turn } from '../llm/chat.ts';
import { Outcome } from '../llm/outcome.tsx';
import { SettingsForm } from '../llm/settings-form.tsx';
import { useChat } from '../llm/use-chat.ts';
import { useOverview } from '../model/overview.ts';
import { CallTrace } from '../playground/call-trace.tsx';
import { type Endpoint, endpointsOf } from '../playground/endpoints.ts';
import { TokenField, useToken } from '../playground/token.tsx';
import '../playground/playground.css';

/** Talk to the models behind the gateway, and see what it does to each call. */
export function Llm(): ReactNode {
  const { data, error, reload } = useOverview();
  if (data === undefined)
    return error === undefined ? (
      <p className="quiet">Looking at the gateway …</p>
    ) : (
      <Problem title="The gateway could not be asked" error={error} retry={reload} />
    );
  const endpoints = endpointsOf(data, 'llm');
  if (endpoints.length === 0)
    return (
      <section className="panel">
        <p>This gateway has no models. Add one to the configuration; this one needs no key:</p>
        <pre>{EXAMPLE}</pre>
      </section>
    );
  return <Playground endpoints={endpoints} />;
}

const EXAMPLE = `llm:
  models:
    - name: '*'
      provider: echo`;

const modelsOf = ({ backends }: Endpoint): string[] =>
  backends.flatMap(({ models = [] }) => models.map(({ name }) => name));

/** `*` stands for any name. */
const firstModel = (endpoint: Endpoint): string => {
  const name = modelsOf(endpoint)[0] ?? '';
  return name.includes('*') ? name.replace('*', 'gpt-4o-mini') : name;
};

function Playground({ endpoints }: { readonly endpoints: readonly Endpoint[] }): ReactNode {
  const [key, setKey] = useState(endpoints[0]?.key ?? '');
  const endpoint = endpoints.find((each) => each.key === key) ?? (endpoints[0] as Endpoint);
  const [settings, setSettings] = useState<Settings>(() => ({
    model: firstModel(endpoint),
    system: '',
    temperature: '',
    maxTokens: '',
    isStreaming: true,
  }));
  const { state, send, stop, clear } = useChat();
  const token = useToken();
  const { body, error } = state;
  return (
    <>
      <div className="panel">
        <div className="row">
          <label className="grow">
            Endpoint
            <select
              value={endpoint.key}
              onChange={({ target }) => {
                setKey(target.value);
                const next = endpoints.find((each) => each.key === target.value);
                if (next !== undefined) setSettings((before) => ({ ...before, model: firstModel(next) }));
                clear();
              }}
            >
              {endpoints.map((each) => (
                <option key={each.key} value={each.key}>
                  {visible(each.name)}
                </option>
              ))}
            </select>
          </label>
          <TokenField />
        </div>
        <SettingsForm
          settings={settings}
          models={modelsOf(endpoint).filter((name) => !name.includes('*'))}
          change={(part) => setSettings((before) => ({ ...before, ...part }))}
        />
      </div>
      <Conversation turns={state.turns} isRunning={state.isRunning} />
      {error === '' ? null : (
        <p role="alert" className="panel problem">
          ✗ {visible(error)}
        </p>
      )}
      <Composer
        isRunning={state.isRunning}
        send={(text) => send(endpoint, token, settings, text)}
        stop={stop}
        clear={clear}
      />
      {body === undefined ? null : (
        <>
          <div className="row bar">
            <CopyButton text={() => asCurl(endpoint, body, token !== '')}>Copy as curl</CopyButton>
            <CopyButton text={() => asSdk(endpoint, body, token !== '')}>Copy for the OpenAI SDK</CopyButton>
          </div>
          <Outcome state={state} />
          <CallTrace trace={state.trace} problem={state.traceProblem} />
        </>
      )}
    </>
  );
}

function Conversation({
  turns,
  isRunning,
}: {
  readonly turns: readonly Turn[];
  readonly isRunning: boolean;
}): ReactNode {
  if (turns.length === 0) return <p className="quiet">Nothing has been said yet.</p>;
  return (
    <section
      role="log"
      className="panel chat"
      aria-label="Conversation"
      aria-busy={isRunning}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, so it must be reachable by keyboard.
      tabIndex={0}
    >
      {turns.map(({ role, content }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a turn is its place.
        <div key={index} className={`turn ${role}`}>
          <strong>{role === 'user' ? 'You' : 'Model'}</strong>
          <pre>{visible(content)}</pre>
        </div>
      ))}
    </section>
  );
}

function Composer({
  isRunning,
  send,
  stop,
  clear,
}: {
  readonly isRunning: boolean;
  readonly send: (text: string) => void;
  readonly stop: () => void;
  readonly clear: () => void;
}): ReactNode {
  const [text, setText] = useState('');
  const submit = (): void => {
    if (text.trim() === '' || isRunning) return;
    send(text);
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <label>
        Message
        <textarea
          className="wide-field"
          rows={3}
          value={text}
          onKeyDown={onKeyDown}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <div className="row bar">
        <button
          type="submit"
          className="primary"
          disabled={isRunning}
          aria-keyshortcuts="Control+Enter Meta+Enter"
        >
          Send
        </button>
        {isRunning ? (
          <button type="button" onClick={stop}>
            Stop
          </button>
        ) : null}
        <button type="button" onClick={clear}>
          New conversation
        </button>
        <span className="quiet">
          <kbd>Ctrl</kbd>
          <kbd>Enter</kbd>
        </span>
      </div>
    </form>
  );
}
