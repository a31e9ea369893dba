import { useEffect, useRef, useState } from 'react';
import { type Watched, watchRequest } from '../playground/watch.ts';
import type { KeptTrace } from '../trace/traces.ts';
import type { McpSession, Reply } from './client.ts';

/** One message that was sent, and its response. */
export interface Call {
  readonly request: unknown;
  readonly reply: Reply | undefined;
  readonly error: string;
  /** Time until the response in ms. */
  readonly took: number | undefined;
  readonly trace: KeptTrace | undefined;
  readonly traceProblem: string;
}

/** The last call of a session, with its trace. */
export function useCall(session: McpSession | undefined): {
  readonly call: Call | undefined;
  readonly isRunning: boolean;
  readonly send: (request: unknown) => void;
  readonly stop: () => void;
} {
  const [call, setCall] = useState<Call>();
  const running = useRef<AbortController | undefined>(undefined);
  const watched = useRef<Watched | undefined>(undefined);
  const stop = (): void => running.current?.abort();
  useEffect(
    () => () => {
      running.current?.abort();
      watched.current?.stop();
    },
    [],
  );
  const send = (request: unknown): void => {
    if (session === undefined) return;
    stop();
    watched.current?.stop();
    const own = new AbortController();
    running.current = own;
    const change = (part: Partial<Call>): void => {
      if (running.current === own)
        setCall((before) => (before === undefined ? before : { ...before, ...part }));
    };
    setCall({ request, reply: undefined, error: '', took: undefined, trace: undefined, traceProblem: '' });
    const run = async (): Promise<void> => {
      const watch = await watchRequest(
        (trace) => change({ trace }),
        (traceProblem) => change({ traceProblem }),
      );
      watched.current = watch;
      const started = performance.now();
      const took = (): number => Math.round(performance.now() - started);
      try {
        const reply = await session.send(request, watch.headers, own.signal);
        change({ reply, took: took() });
      } catch (error) {
        watch.stop();
        change({ error: own.signal.aborted ? 'Stopped.' : (error as Error).message, took: took() });
      }
    };
    void run();
  };
  return { call, isRunning: call !== undefined && call.took === undefined, send, stop };
}
