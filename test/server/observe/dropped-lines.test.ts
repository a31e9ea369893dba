import { afterEach, expect, test, vi } from 'vitest';
import { createLog, type LineSink } from '../../../src/core/log.ts';
import { DroppedLinesReporter } from '../../../src/server/observe/access-log.ts';
import { parseMetrics, sampleValue } from '../../kit/open-metrics.ts';
import { serve } from '../../kit/process.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

const WARNING = 'access-log lines were lost: stdout is not read fast enough';

afterEach(() => void vi.useRealTimers());

test('access log lines dropped by a blocked stdout are counted in a metric and reported once on stderr', async () => {
  // Twelve fields of 1 KiB: the queue of 1 MiB is full after some hundred requests.
  const add = Object.fromEntries(
    Array.from({ length: 12 }, (_, index) => [`pad${index}`, 'request.headers.pad']),
  );
  const route = { policies: { directResponse: { body: 'ok' } } };
  const yaml = routesConfig([route], { frontendPolicies: { accessLog: { add } } });
  await using running = await serve(yaml, { pauseStdout: true, env: { STATS_ADDR: '127.0.0.1:0' } });
  const [, stats] = /address="(127\.0\.0\.1:\d+)" component="stats"/.exec(running.stderr) ?? [];
  const lost = async (): Promise<number> => {
    const headers = { accept: 'application/openmetrics-text' };
    const families = parseMetrics((await send(`http://${stats}/metrics`, { headers })).text);
    return sampleValue(families, 'gw_access_log_lines_lost_total') ?? -1;
  };
  expect(await lost()).toBe(0);
  const headers = { pad: 'x'.repeat(1024) };
  let sent = 0;
  const loseSome = async (): Promise<void> => {
    const before = await lost();
    // Ends: each request adds 12 KiB, and pipe and queue hold a bounded number of them.
    while ((await lost()) === before) {
      await Promise.all(Array.from({ length: 20 }, () => send(running.url, { headers })));
      sent += 20;
    }
  };
  await loseSome();
  await until(() => running.stderr.includes(WARNING));
  await loseSome();
  const total = await lost();
  expect(total).toBeLessThan(sent);
  running.kill('SIGTERM');
  // stdout is still not read: the process exits anyway and reports the losses since the first warning.
  const { stderr, code, signal } = await running.finished;
  const counts = [...stderr.matchAll(/lost=(\d+) total=(\d+)/g)].map(([, one, all]) => [
    Number(one),
    Number(all),
  ]);
  expect([code, signal, counts.length]).toEqual([0, null, 2]);
  expect(counts[0]?.[0]).toBe(counts[0]?.[1]);
  expect(Number(counts[0]?.[0]) + Number(counts[1]?.[0])).toBe(counts[1]?.[1]);
  expect(counts[1]?.[1]).toBeGreaterThanOrEqual(total);
});

test('continued loss of access log lines is reported once a minute and no longer after it has ended', () => {
  vi.useFakeTimers();
  const written: string[] = [];
  const log = createLog(
    { write: (line) => void written.push(line), dropped: 0, flush: () => Promise.resolve() },
    'info',
    'text',
  );
  let dropped = 0;
  let problem: string | undefined;
  let tell = (): void => undefined;
  const sink: LineSink = {
    write: () => undefined,
    get dropped() {
      return dropped;
    },
    onDropped: (listener) => {
      tell = listener;
    },
    get failure() {
      return { problem, isEnded: problem !== undefined };
    },
    flush: () => Promise.resolve(),
  };
  const lines = new DroppedLinesReporter(sink, log);
  const lose = (): void => {
    dropped += 1;
    tell();
  };
  for (let second = 0; second < 90; second += 1) {
    lose();
    vi.advanceTimersByTime(1_000);
  }
  vi.advanceTimersByTime(600_000);
  // Once the reader has left, all lines are lost: said once.
  problem = 'its reader has left';
  for (let second = 0; second < 90; second += 1) {
    lose();
    vi.advanceTimersByTime(1_000);
  }
  lines.close();
  expect(written.at(-1)).toContain('access-log lines were lost: stdout: its reader has left');
  expect(written.map((line) => /lost=\d+ total=\d+/.exec(line)?.[0])).toEqual([
    'lost=1 total=1',
    'lost=59 total=60',
    'lost=30 total=90',
    'lost=1 total=91',
  ]);
});
