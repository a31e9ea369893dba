import { type ReactNode, useId, useState } from 'react';
import { Select } from '../../shared/form.tsx';
import { visible } from '../../shared/visible.ts';
import type { Endpoint } from '../playground/endpoints.ts';
import type { Settings } from './chat.ts';
import { type Chat, useChat } from './conversation.tsx';

/** One side of a comparison: endpoint, model settings, and conversation. */
export interface Side {
  readonly endpoint: Endpoint;
  readonly settings: Settings;
  readonly chat: Chat;
  readonly chooseEndpoint: (key: string) => void;
  readonly change: (part: Partial<Settings>) => void;
}

/** @param place index of the initial model, counted from 0 over all endpoints */
export function useSide(endpoints: readonly [Endpoint, ...Endpoint[]], place: number): Side {
  const [key, setKey] = useState(() => startOf(endpoints, place).endpoint.key);
  const [settings, setSettings] = useState<Settings>(() => ({
    model: startOf(endpoints, place).model,
    system: '',
    temperature: '',
    maxTokens: '',
    isStreaming: true,
  }));
  const chat = useChat();
  const change = (part: Partial<Settings>): void => setSettings((before) => ({ ...before, ...part }));
  return {
    endpoint: endpoints.find((each) => each.key === key) ?? endpoints[0],
    settings,
    chat,
    change,
    chooseEndpoint: (next) => {
      const endpoint = endpoints.find((each) => each.key === next);
      if (endpoint === undefined) return;
      setKey(next);
      change({ model: namesOf(endpoint)[0] ?? '' });
      chat.clear();
    },
  };
}

function startOf(
  endpoints: readonly [Endpoint, ...Endpoint[]],
  place: number,
): { readonly endpoint: Endpoint; readonly model: string } {
  const all = endpoints.flatMap((endpoint) => namesOf(endpoint).map((model) => ({ endpoint, model })));
  return all[place] ?? all[0] ?? { endpoint: endpoints[0], model: '' };
}

/** Models that can be requested. `*` matches any name. */
function namesOf({ backends }: Endpoint): string[] {
  return backends.flatMap(({ models = [] }) => models.map(({ name }) => name.replace('*', 'gpt-4o-mini')));
}

/** Selects the endpoint, the model and its parameters. */
export function SideForm({
  side: { endpoint, settings, change, chooseEndpoint },
  endpoints,
}: {
  readonly side: Side;
  readonly endpoints: readonly Endpoint[];
}): ReactNode {
  const models = endpoint.backends
    .flatMap(({ modelNames }) => modelNames ?? [])
    .filter((name) => !name.includes('*'));
  return (
    <SettingsForm settings={settings} models={models} change={change}>
      <Select
        label="Endpoint"
        className="grow"
        value={endpoint.key}
        values={endpoints.map(({ key, name }) => [key, name])}
        choose={chooseEndpoint}
      />
    </SettingsForm>
  );
}

/** Selects the model, beside the endpoint, and its parameters. */
function SettingsForm({
  settings,
  models,
  change,
  children,
}: {
  readonly settings: Settings;
  readonly models: readonly string[];
  readonly change: (part: Partial<Settings>) => void;
  readonly children: ReactNode;
}): ReactNode {
  const id = useId();
  // On a phone, the message box would be out of sight below them.
  const [hasRoom] = useState(() => matchMedia('(min-width: 48rem)').matches);
  return (
    <>
      <div className="row">
        {children}
        <label className="grow">
          Model
          <input
            type="text"
            list={id}
            required
            autoComplete="off"
            spellCheck={false}
            value={settings.model}
            onChange={({ target }) => change({ model: target.value })}
          />
        </label>
        <datalist id={id}>
          {models.map((model) => (
            <option key={model} value={model}>
              {visible(model)}
            </option>
          ))}
        </datalist>
      </div>
      <details className="parameters" open={hasRoom}>
        <summary>Parameters</summary>
        <div className="row settings">
          <label>
            Temperature
            <input
              type="number"
              min={0}
              max={2}
              step="any"
              value={settings.temperature}
              onChange={({ target }) => change({ temperature: target.value })}
            />
          </label>
          <label>
            Max tokens
            <input
              type="number"
              min={1}
              value={settings.maxTokens}
              onChange={({ target }) => change({ maxTokens: target.value })}
            />
          </label>
          <label className="choice">
            <input
              type="checkbox"
              checked={settings.isStreaming}
              onChange={({ target }) => change({ isStreaming: target.checked })}
            />{' '}
            stream
          </label>
          <label className="grow">
            System prompt
            <input
              type="text"
              autoComplete="off"
              value={settings.system}
              onChange={({ target }) => change({ system: target.value })}
            />
          </label>
        </div>
      </details>
    </>
  );
}
