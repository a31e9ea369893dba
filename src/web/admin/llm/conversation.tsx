import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { messageOf } from '../../../core/errors.ts';
import { visible } from '../../shared/visible.ts';
import { type Watched, watchRequest } from '../playground/call-trace.tsx';
import type { Endpoint } from '../playground/endpoints.ts';
import { SendOrStop } from '../playground/send-or-stop.tsx';
import type { KeptTrace } from '../trace/traces.ts';
import { type ChatAnswer, chat, requestBody, type Settings, type Turn } from './chat.ts';

export interface ChatState {
  readonly turns: readonly Turn[];
  readonly isRunning: boolean;
  readonly error: string;
  readonly answer: ChatAnswer | undefined;
  readonly trace: KeptTrace | undefined;
  readonly traceProblem: string;
  /** Body of the last request. */
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

const EMPTY: ChatState = {
  turns: [],
  isRunning: false,
  error: '',
  answer: undefined,
  trace: undefined,
  traceProblem: '',
  body: undefined,
};

export interface Chat {
  readonly state: ChatState;
  readonly send: (endpoint: Endpoint, token: string, settings: Settings, text: string) => void;
  readonly stop: () => void;
  readonly clear: () => void;
}

/** A conversation with a model. */
export function useChat(): Chat {
  const [state, setState] = useState(EMPTY);
  const running = useRef<AbortController | undefined>(undefined);
  const watched = useRef<Watched | undefined>(undefined);
  const end = (): void => {
    running.current?.abort();
    watched.current?.stop();
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once, when the page is left.
  useEffect(() => end, []);
  const send = (endpoint: Endpoint, token: string, settings: Settings, text: string): void => {
    end();
    const own = new AbortController();
    running.current = own;
    const change = (part: Partial<ChatState>): void => {
      if (running.current === own) setState((before) => ({ ...before, ...part }));
    };
    const turns: readonly Turn[] = [...state.turns, { role: 'user', content: text }];
    const body = requestBody(settings, turns);
    setState({ ...EMPTY, turns, body, isRunning: true });
    const run = async (): Promise<void> => {
      const watch = await watchRequest(
        (trace) => change({ trace }),
        (traceProblem) => change({ traceProblem }),
      );
      watched.current = watch;
      const said = (content: string): void => change({ turns: [...turns, { role: 'assistant', content }] });
      try {
        change({ answer: await chat(endpoint, token, body, watch.headers, said, own.signal) });
      } catch (error) {
        if (own.signal.aborted) watch.stop();
        change({ error: own.signal.aborted ? 'Stopped.' : messageOf(error) });
      }
      change({ isRunning: false });
    };
    void run();
  };
  return {
    state,
    send,
    stop: () => running.current?.abort(),
    clear: () => {
      end();
      running.current = undefined;
      setState(EMPTY);
    },
  };
}

/** The messages of a conversation. */
export function Conversation({
  label,
  turns,
  isRunning,
}: {
  readonly label: string;
  readonly turns: readonly Turn[];
  readonly isRunning: boolean;
}): ReactNode {
  if (turns.length === 0) return <p className="quiet">No messages yet.</p>;
  return (
    <section
      role="log"
      className="panel chat"
      aria-label={label}
      aria-busy={isRunning}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, so it must be reachable by keyboard.
      tabIndex={0}
    >
      {turns.map(({ role, content }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a turn is identified by its position.
        <div key={index} className={`turn ${role}`}>
          <strong>{role === 'user' ? 'You' : 'Model'}</strong>
          <pre>{visible(content)}</pre>
        </div>
      ))}
    </section>
  );
}

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
