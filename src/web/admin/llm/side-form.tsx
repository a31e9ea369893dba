import type { ReactNode } from 'react';
import { visible } from '../../shared/visible.ts';
import type { Endpoint } from '../playground/endpoints.ts';
import { SettingsForm } from './settings-form.tsx';
import type { Side } from './use-side.ts';

/** Selects the endpoint, the model and its parameters. */
export function SideForm({
  side: { endpoint, settings, change, chooseEndpoint },
  endpoints,
}: {
  readonly side: Side;
  readonly endpoints: readonly Endpoint[];
}): ReactNode {
  const models = endpoint.backends
    .flatMap((backend) => backend.models ?? [])
    .map(({ name }) => name)
    .filter((name) => !name.includes('*'));
  return (
    <>
      <div className="row">
        <label className="grow">
          Endpoint
          <select value={endpoint.key} onChange={({ target }) => chooseEndpoint(target.value)}>
            {endpoints.map(({ key, name }) => (
              <option key={key} value={key}>
                {visible(name)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <SettingsForm settings={settings} models={models} change={change} />
    </>
  );
}
