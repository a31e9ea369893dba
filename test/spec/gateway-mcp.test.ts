import { realpathSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, parseAccessLine, type TestGateway } from '../kit/gateway.ts';
import { until } from '../kit/until.ts';

// The two servers of the quickstart behind one endpoint, and the official clients of both generations in front.

const commands = fileURLToPath(new URL('../../node_modules/.bin', import.meta.url));
const { path, remove } = await temporaryFolder();
const folder = realpathSync(path);
const FILE = join(folder, 'hello.txt');
const CONFIG = `# yaml-language-server: $schema=../../man/config.schema.json
config: { adminAddr: "off", connectionTerminationDeadline: 100ms }
gateways:
  default:
    port: 0
    protocol: HTTP
    routes:
      - name: tools
        matches:
          - path: { pathPrefix: /mcp }
        backends:
          - mcp:
              targets:
                - name: everything
                  stdio:
                    cmd: mcp-server-everything
                - name: files
                  stdio:
                    cmd: mcp-server-filesystem
                    args: ["\${SHARED_FOLDER}"]
`;

let gate: TestGateway;
let url: URL;
beforeAll(async () => {
  writeFileSync(FILE, 'text of a file');
  const PATH = [commands, process.env['PATH']].join(delimiter);
  gate = await gateway(CONFIG, { env: { PATH, SHARED_FOLDER: folder } });
  url = new URL(`${gate.url}/mcp`);
});
afterAll(async () => {
  await gate.close();
  await remove();
});

const INFO = { name: 'official-client', version: '1.0.0' };
/** What both generations have in common here; their types differ in details that the tests do not touch. */
type Client = Pick<ClientV2, 'close' | 'listTools' | 'callTool'>;

const CLIENTS: Record<string, () => Promise<Client>> = {
  'SDK 1': async () => {
    const client = new ClientV1(INFO);
    await client.connect(new TransportV1(url) as Parameters<ClientV1['connect']>[0]);
    return client as unknown as Client;
  },
  'SDK 2': async () => {
    const client = new ClientV2(INFO);
    await client.connect(new TransportV2(url));
    return client;
  },
  'SDK 2, asking for the newest revision first': async () => {
    const client = new ClientV2(INFO, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new TransportV2(url));
    return client;
  },
};

describe.each(Object.entries(CLIENTS))('the official client, %s', (_name, connect) => {
  let client: Client;
  beforeAll(async () => {
    client = await connect();
    // A session begins without a server that is slow to start; its tools are listed when it is ready.
    await until(async () => {
      const { tools } = await client.listTools();
      return ['everything_', 'files_'].every((prefix) => tools.some(({ name }) => name.startsWith(prefix)));
    });
  });
  afterAll(() => client.close());

  test('the official client lists the tools of both servers', async () => {
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toContain('everything_echo');
    expect(names).toContain('files_read_text_file');
    expect(names.every((name) => /^(?:everything|files)_/.test(name))).toBe(true);
    // Every everything_ tool before every files_ tool: the order of the configuration.
    expect(names.findLastIndex((name) => name.startsWith('everything_'))).toBeLessThan(
      names.findIndex((name) => name.startsWith('files_')),
    );
  });

  test('the official client calls a tool of each server', async () => {
    const echo = await client.callTool({
      name: 'everything_echo',
      arguments: { message: 'through the gateway' },
    });
    expect(JSON.stringify(echo.content)).toContain('through the gateway');
    const file = await client.callTool({ name: 'files_read_text_file', arguments: { path: FILE } });
    expect(file.content).toEqual([{ type: 'text', text: 'text of a file' }]);
    const refused = await client.callTool({
      name: 'files_read_text_file',
      arguments: { path: '/etc/passwd' },
    });
    expect(refused.isError).toBe(true);
  });

  test('the official client gets an error for a tool that does not exist', async () => {
    await expect(client.callTool({ name: 'nothing_here' })).rejects.toThrow('Unknown tool: nothing_here');
  });
});

test('progress reaches the caller of the official client while the tool runs', async () => {
  const client = new ClientV2(INFO);
  await client.connect(new TransportV2(url));
  const steps: number[] = [];
  await client.callTool(
    { name: 'everything_trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } },
    { onprogress: ({ progress }) => void steps.push(progress) },
  );
  expect(steps).toEqual([1, 2]);
  await client.close();
});

test('a client that requests the newest revision first uses it, also if the targets only have older ones', async () => {
  const before = gate.accessLog.length;
  const client = new ClientV2(INFO, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new TransportV2(url));
  // Lines of streams that other clients have left may come in between.
  const beginnings = () =>
    gate.accessLog
      .slice(before)
      .map(parseAccessLine)
      .filter((line) => ['server/discover', 'initialize'].includes(line['mcp.method.name'] ?? ''));
  const { tools } = await client.listTools();
  expect(tools.some(({ name }) => name === 'files_read_text_file')).toBe(true);
  await until(() => beginnings().length > 0);
  expect(beginnings()).toMatchObject([{ 'mcp.method.name': 'server/discover', 'http.status': '200' }]);
  await client.close();
});

test('a session that the official client ends is removed with its processes', async () => {
  const client = new ClientV2(INFO);
  const transport = new TransportV2(url);
  const ended = (): number => gate.log.filter((line) => line.includes('target ended')).length;
  await client.connect(transport);
  const before = ended();
  await transport.terminateSession();
  await until(() => ended() === before + 2);
  await client.close();
});
