import { type ReactNode, useId } from 'react';
import { visible } from '../../shared/visible.ts';
import type { Settings } from './chat.ts';

/** Selects the model and its parameters. */
export function SettingsForm({
  settings,
  models,
  change,
}: {
  readonly settings: Settings;
  readonly models: readonly string[];
  readonly change: (part: Partial<Settings>) => void;
}): ReactNode {
  const id = useId();
  return (
    <div className="row settings">
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
  );
}
