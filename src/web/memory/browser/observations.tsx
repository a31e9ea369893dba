import { type FormEvent, type ReactNode, useState } from 'react';
import { counted } from '../../shared/format.ts';
import { visible } from '../../shared/visible.ts';
import { deleteOnClick } from '../deletions.ts';
import { API, type Entity } from '../model.ts';
import { Unreachable } from '../placeholder.tsx';
import { useChange } from './change.ts';

/** What agents have observed; undefined for an entity that they have not written. */
export function observationsOf({ type, metadata }: Entity): readonly string[] | undefined {
  const list = metadata['observations'];
  return type === 'entity' && Array.isArray(list) ? list.filter((one) => typeof one === 'string') : undefined;
}

interface Props {
  readonly entity: Entity;
  readonly hidden: ReadonlySet<string>;
  readonly changed: () => void;
}

/** The observations of an entity of agents: add, change and delete them. */
export function Observations({ entity, hidden, changed }: Props): ReactNode {
  const observations = observationsOf(entity) ?? [];
  const shown = observations.filter((text) => !hidden.has(keyOf(entity, text)));
  const { error, send } = useChange(changed);
  const [edited, setEdited] = useState<string>();
  const add = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const text = String(new FormData(form).get('text')).trim();
    if (text !== '')
      send({ addObservations: [{ entityName: entity.name, contents: [text] }] }, () => form.reset());
  };
  const replace = (former: string, text: string): void => {
    const close = (): void => setEdited(undefined);
    if (text === former || text === '') close();
    else
      send(
        {
          addObservations: [{ entityName: entity.name, contents: [text] }],
          deleteObservations: [{ entityName: entity.name, observations: [former] }],
        },
        close,
      );
  };
  return (
    <section aria-labelledby="observations">
      <h3 id="observations">{counted(shown.length, 'observation')}</h3>
      <ul className="changeable">
        {shown.map((text) => (
          <li key={text}>
            {text === edited ? (
              <Edit text={text} save={(next) => replace(text, next)} cancel={() => setEdited(undefined)} />
            ) : (
              <>
                <span className="text">{visible(text)}</span>
                <button
                  type="button"
                  className="plain"
                  aria-label={`Edit ${visible(text)}`}
                  onClick={() => setEdited(text)}
                >
                  Edit
                </button>
                <button
                  type="button"
                  className="plain"
                  aria-label={`Delete ${visible(text)}`}
                  onClick={deleteOnClick({
                    key: keyOf(entity, text),
                    what: `“${visible(text.slice(0, 60))}${text.length > 60 ? '…' : ''}”`,
                    path: `${API}/graph`,
                    method: 'POST',
                    body: { deleteObservations: [{ entityName: entity.name, observations: [text] }] },
                  })}
                >
                  Delete
                </button>
              </>
            )}
          </li>
        ))}
      </ul>
      {error === undefined ? null : <Unreachable error={error} retry={changed} />}
      <form className="row" onSubmit={add}>
        <label className="wide">
          New observation
          {/* Without `maxLength`, with which a browser cuts what is pasted and says nothing. */}
          <textarea name="text" rows={2} required />
        </label>
        <button type="submit">Add</button>
      </form>
    </section>
  );
}

const keyOf = ({ id }: Entity, text: string): string => `${id} observation ${text}`;

function Edit({
  text,
  save,
  cancel,
}: {
  readonly text: string;
  readonly save: (text: string) => void;
  readonly cancel: () => void;
}): ReactNode {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    save(String(new FormData(event.currentTarget).get('text')).trim());
  };
  return (
    <form
      className="row"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === 'Escape') cancel();
      }}
    >
      <label className="wide">
        Observation
        <textarea
          name="text"
          rows={3}
          defaultValue={text}
          required
          // biome-ignore lint/a11y/noAutofocus: it replaces the button that had the focus.
          autoFocus
        />
      </label>
      <button type="submit" className="primary">
        Save
      </button>
      <button type="button" onClick={cancel}>
        Cancel
      </button>
    </form>
  );
}
