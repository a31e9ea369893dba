import type { ReactNode } from 'react';
import { visible } from './visible.ts';
import { WithCode } from './with-code.tsx';

/** A choice of one value, with its label. A value without a text of its own is shown as it is. */
export function Select({
  label,
  value,
  values,
  choose,
  className,
}: {
  readonly label: string;
  readonly value: string;
  readonly values: readonly (readonly [value: string, text?: string])[];
  readonly choose: (value: string) => void;
  readonly className?: string;
}): ReactNode {
  return (
    <label className={className}>
      {label}
      <select value={value} onChange={({ target }) => choose(target.value)}>
        {values.map(([each, text = each]) => (
          <option key={each} value={each}>
            {visible(text)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Why something failed that was just tried here. Announced when it appears. */
export function Failure({ text }: { readonly text: string }): ReactNode {
  return text === '' ? null : (
    <p role="alert" className="bad">
      ✗ <WithCode text={text} />
    </p>
  );
}
