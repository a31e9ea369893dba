import type { TestGatewayOptions } from '../../kit/gateway.ts';
import { openTrace, traceServer } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';
import { recordingGateway } from './recorded.ts';

/** Pages of the admin server that show requests, the configuration or the state. */
const PAGES = [
  '/api/requests',
  '/api/overview',
  '/api/config',
  '/api/keys',
  '/api/usage',
  '/api/budgets',
  '/config_dump',
  '/logging',
  '/memory',
  '/debug/tasks',
];

/** A gateway that is watched in every way: log, record, trace, admin server, metrics and files. */
export interface Observed extends AsyncDisposable {
  readonly url: string;
  /** Of each port, in the order of the configuration. */
  readonly urls: readonly string[];
  /** All that is kept or shown, once so many lines with this word are in the access log; one unless told otherwise. */
  everything(word: string, lines?: number): Promise<string>;
}

/** `sections`: the configuration, with `config` merged into that of the record. */
export async function observed(
  { config, ...more }: { readonly config?: object; readonly [section: string]: unknown },
  options?: TestGatewayOptions,
): Promise<Observed> {
  const recording = await recordingGateway({ more, ...(config && { config }), ...(options && { options }) });
  const { gate } = recording;
  const traces = await traceServer(gate.running);
  const trace = await openTrace(traces, '?follow=true');
  const page = async (path: string): Promise<string> => (await fetch(gate.admin + path)).text();
  return {
    url: gate.url,
    urls: gate.ports.map((port) => `http://127.0.0.1:${port}`),
    async everything(word, lines = 1) {
      await until(() => gate.accessLog.filter((line) => line.includes(word)).length >= lines);
      const count = gate.accessLog.length;
      const records = await recording.records('limit=100', count);
      await until(() => trace.of('requestFinished').length >= count);
      // Bodies in traces are base64.
      const bodies = trace.of('bodySnapshot').map(({ body }) => Buffer.from(body, 'base64').toString());
      const pages = PAGES.map(page);
      const details = records.map(({ id }) => page(`/api/records/${id}`));
      const metrics = await gate.running.metrics.render();
      const kept = [...gate.accessLog, ...gate.log, trace.text, ...bodies, metrics, recording.bytes()];
      return [...kept, ...(await Promise.all([...pages, ...details]))].join('\n');
    },
    [Symbol.asyncDispose]: async () => {
      trace.leave();
      await traces[Symbol.asyncDispose]();
      await recording[Symbol.asyncDispose]();
    },
  };
}
