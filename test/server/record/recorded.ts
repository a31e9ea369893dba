import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { EVERY_FORMAT } from '../../kit/llm-provider.ts';
import type { Json } from '../../kit/mcp.ts';
import { until } from '../../kit/until.ts';

/** A gateway that records its requests in a folder of its own. */
export interface RecordingGateway extends AsyncDisposable {
  readonly gate: TestGateway;
  readonly folder: string;
  /** A JSON answer of the admin server. */
  get(path: string): Promise<Json>;
  /** Waits until the search has this many records, and returns them, newest first. */
  records(query: string, count: number): Promise<Json[]>;
  /** All bytes of the database: the file, and its log of writes. */
  bytes(): string;
}

interface Parts {
  /** `frontendPolicies.accessLog.database`. */
  readonly record?: object;
  readonly config?: object;
  /** Other sections. */
  readonly more: object;
  readonly options?: TestGatewayOptions;
}

export async function recordingGateway({ record, config, more, options }: Parts): Promise<RecordingGateway> {
  const folder = await temporaryFolder();
  const text = JSON.stringify({
    config: {
      adminAddr: 'off',
      connectionTerminationDeadline: '100ms',
      database: { url: 'sqlite://./data/requests.db' },
      ...config,
    },
    ...(record && { frontendPolicies: { accessLog: { database: record } } }),
    ...more,
  });
  const gate = await gateway(text, {
    ...options,
    folder: folder.path,
    admin: true,
    limits: { recordDelay: 5, ...options?.limits },
  });
  const get = async (path: string): Promise<Json> => (await fetch(gate.admin + path)).json();
  return {
    gate,
    folder: folder.path,
    get,
    async records(query, count) {
      let found: Json[] = [];
      await until(async () => {
        found = (await get(`/api/records?${query}`)).records;
        return found.length >= count;
      });
      return found;
    },
    bytes: () =>
      readdirSync(join(folder.path, 'data'))
        .map((name) => readFileSync(join(folder.path, 'data', name), 'latin1'))
        .join('\n'),
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await folder.remove();
    },
  };
}

/** The `llm` section with one model entry, `*`, that this provider answers. */
export const llmSection = ({ address }: { address: string }, llm: object = {}) => ({
  llm: {
    port: 0,
    models: [{ name: '*', provider: EVERY_FORMAT, params: { baseUrl: `http://${address}/v1` } }],
    ...llm,
  },
});
