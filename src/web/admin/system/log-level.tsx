import { type FormEvent, type ReactNode, useState } from 'react';
import { ask } from '../../shared/api.ts';
import { Select } from '../../shared/form.tsx';
import { say } from '../../shared/toasts.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';

const LEVELS = ['error', 'warn', 'info', 'debug', 'trace', 'off'];
const TIMES = [
  ['', 'until it is changed'],
  ['1m', 'for 1 minute'],
  ['10m', 'for 10 minutes'],
  ['1h', 'for 1 hour'],
] as const;
const EVERY = 5_000;

/** Extracts the level from `current log level is info (until 2026-…)`. */
function levelOf(text: string): string {
  return /^current log level is (\S*)/.exec(text)?.[1] ?? text;
}

/** Changes log levels for everything or for single modules, permanently or temporarily. */
export function LogLevel(): ReactNode {
  const { data, reload } = useLoaded<string>('/logging', EVERY);
  const [level, setLevel] = useState('debug');
  const [part, setPart] = useState('');
  const [time, setTime] = useState('10m');
  const [problem, setProblem] = useState('');
  const current = data === undefined ? '' : levelOf(data);
  const set = async (directives: string, duration: string): Promise<string> => {
    const query = new URLSearchParams({
      level: directives,
      reset: 'true',
      ...(duration === '' ? {} : { for: duration }),
    });
    const answer = await ask<string>(`/logging?${query}`, { method: 'POST' });
    reload();
    return levelOf(answer);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const wanted = part.trim() === '' ? level : `${current},${part.trim()}=${level}`;
    set(wanted, time).then(
      (now) => {
        setProblem('');
        say({
          text: `The log level is ${visible(now)} ${TIMES.find(([value]) => value === time)?.[1] ?? ''}`,
          undo: () =>
            void set(current, '').catch((error: Error) => say({ text: error.message, isBad: true })),
        });
      },
      (error: Error) => setProblem(error.message),
    );
  };
  return (
    <section className="panel" aria-labelledby="log-level">
      <h2 id="log-level">Log level</h2>
      <p>
        Now <code>{visible(current)}</code>{' '}
        <span className="quiet">{/\(until .*\)/.exec(data ?? '')?.[0]}</span>
      </p>
      <form className="row" onSubmit={submit}>
        <Select label="Level" value={level} values={LEVELS.map((name) => [name])} choose={setLevel} />
        <label>
          Part of the gateway
          <input
            type="text"
            className="mono"
            spellCheck={false}
            placeholder="all of it, or mcp"
            value={part}
            aria-describedby="log-problem"
            onChange={(event) => setPart(event.target.value)}
          />
        </label>
        <Select label="How long" value={time} values={TIMES} choose={setTime} />
        <button type="submit" disabled={data === undefined}>
          Change
        </button>
      </form>
      <pre id="log-problem" className="bad" hidden={problem === ''}>
        ✗ {visible(problem)}
      </pre>
    </section>
  );
}
