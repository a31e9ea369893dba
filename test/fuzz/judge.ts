import type { TestGateway } from '../kit/gateway.ts';
import { parseAccessLine } from '../kit/gateway.ts';
import type { Json } from '../kit/mcp.ts';
import { until } from '../kit/until.ts';

/** Fails a trial. */
export function must(holds: boolean, what: string, seen?: unknown): asserts holds {
  if (holds) return;
  const text = typeof seen === 'string' ? seen : JSON.stringify(seen);
  throw new Error(text === undefined ? what : `${what}: ${text.slice(0, 600)}`);
}

export function parsed(text: string, what: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${what} is not JSON: ${text.slice(0, 300)}`);
  }
}

/** The events of a stream, each with its name and data. Fails unless every line belongs to one. */
export function eventsOf(
  received: string,
): { readonly name: string; readonly data: string; readonly id: string }[] {
  // The events of a provider that are passed on have its line breaks.
  const text = received.replaceAll('\r\n', '\n');
  must(text === '' || text.endsWith('\n\n'), 'a stream ends within an event', text.slice(-300));
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => {
      const fields = { name: '', id: '', data: undefined as string | undefined };
      for (const line of block.split('\n')) {
        const [, field, value] = /^(data|event|id|retry|): ?(.*)$/s.exec(line) ?? [];
        must(field !== undefined, 'a line of a stream has no field', line);
        if (field === 'data') fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
        else if (field === 'event') fields.name = value as string;
        else if (field === 'id') fields.id = value as string;
      }
      return { ...fields, data: fields.data ?? '' };
    })
    .filter(({ name, data }) => name !== '' || data !== '');
}

/** Log lines of a gateway, found by the header `x-trial` of their requests. */
export interface LogReader {
  /** Access-log lines of requests with that header. Waits for `count` of them. */
  lines(trial: string, count: number): Promise<Record<string, string>[]>;
  /** Whether the gateway has said something of itself with this text. */
  said(text: string): boolean;
  /** For a `Kind`. */
  internalErrors(): number;
  internalError(): string;
}

/** Add it to `frontendPolicies.accessLog.add`. */
export const TRIAL_FIELD = { trial: 'request.headers["x-trial"]' };

export function logReader(gate: TestGateway): LogReader {
  const found = new Map<string, Record<string, string>[]>();
  let last = '';
  // What was read is dropped: a hundred thousand trials write more than fits.
  const take = (): void => {
    for (const line of (gate.accessLog as string[]).splice(0)) {
      const trial = / trial="?([^ "\n]+)/.exec(line)?.[1];
      if (trial === undefined) continue;
      const list = found.get(trial) ?? [];
      found.set(trial, [...list, parseAccessLine(line)]);
    }
    if (found.size > 4_000) for (const name of [...found.keys()].slice(0, 2_000)) found.delete(name);
  };
  return {
    lines: async (trial, count) => {
      take();
      if (gate.log.length > 20_000) (gate.log as string[]).splice(0, 10_000);
      await until(() => {
        take();
        return (found.get(trial)?.length ?? 0) >= count;
      }, 10_000);
      const lines = found.get(trial) ?? [];
      found.delete(trial);
      return lines;
    },
    said: (text) => gate.log.some((line) => line.includes(text)),
    internalErrors: () => gate.running.metrics.internalErrors?.() ?? 0,
    internalError: () => {
      last = gate.log.findLast((line) => /internal error|inside the gateway/i.test(line)) ?? last;
      return last;
    },
  };
}
