import { type KeyboardEvent, type ReactNode, useState } from 'react';
import { SendOrStop } from '../playground/send-or-stop.tsx';

/** Input for a message; Ctrl+Enter or Cmd+Enter sends it. */
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
        <SendOrStop verb="Send" isRunning={isRunning} stop={stop} shortcut="Control+Enter Meta+Enter" />
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
