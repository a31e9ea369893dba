import { type KeyboardEvent, type ReactNode, useState } from 'react';

/** Where one writes; Ctrl or Cmd and Enter sends. */
export function Composer({
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
