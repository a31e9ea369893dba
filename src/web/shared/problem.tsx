import type { ReactNode } from 'react';
import { CopyButton } from './copy.tsx';
import { WithCode } from './with-code.tsx';

/** Displays what failed and what to do next. Announced when it appears. */
export function Problem({
  title,
  error,
  command,
  retry,
}: {
  readonly title: string;
  readonly error: Error;
  /** A command to run in a terminal. */
  readonly command?: string;
  readonly retry?: () => void;
}): ReactNode {
  return (
    <div role="alert" className="panel problem">
      <p>
        <strong>✗ {title}</strong>
      </p>
      <p>
        <WithCode text={error.message} />
      </p>
      {command === undefined ? null : <Command text={command} />}
      {retry === undefined ? null : (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A command or call to copy. */
export function Command({ text }: { readonly text: string }): ReactNode {
  return (
    <div className="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard. */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text}>Copy</CopyButton>
    </div>
  );
}
