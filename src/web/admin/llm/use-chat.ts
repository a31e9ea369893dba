import { useEffect, useRef, useState } from 'react';
import type { Endpoint } from '../playground/endpoints.ts';
import { type Watched, watchRequest } from '../playground/watch.ts';
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
        change({ error: own.signal.aborted ? 'Stopped.' : (error as Error).message });
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
