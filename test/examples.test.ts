import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from './kit/config.ts';
import { temporaryFolder } from './kit/folder.ts';
import { gateway, type TestGateway } from './kit/gateway.ts';
import { freePort } from './kit/ports.ts';
import { until } from './kit/until.ts';
import { type HttpUpstream, httpUpstream } from './kit/upstream.ts';

const exampleOf = (name: string): string => fileURLToPath(new URL(`../examples/${name}`, import.meta.url));

describe('examples/tools.yaml, called with examples/call-tool.mjs', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let api: HttpUpstream;
  let gate: TestGateway;
  beforeAll(async () => {
    folder = await temporaryFolder();
    api = await httpUpstream(({ url }, response) => {
      response.setHeader('content-type', 'application/json');
      if (url === '/orders/404') response.statusCode = 404;
      response.end('{"id":7,"customer":"ann@example.com"}');
    });
    const env = { TOOLS_PORT: '0', SHOP_API: `http://${api.address}` };
    gate = await gateway(readFileSync(exampleOf('tools.yaml'), 'utf8'), { env, folder: folder.path });
  });
  afterAll(async () => {
    await gate.close();
    await api.close();
    await folder.remove();
  });

  const callAt = (...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      execFile(process.execPath, [exampleOf('call-tool.mjs'), ...args], (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, stdout, stderr }),
      );
    });
  const callTool = (...args: string[]) => callAt(`${gate.url}/mcp`, ...args);

  test('the example for tools lists the chosen tools under their new names, and pins them', async () => {
    const { code, stdout } = await callTool();
    expect([code, stdout]).toEqual([0, expect.stringContaining('2 tools: order, add_note\n')]);
    const pins = readFileSync(join(folder.path, 'tools.lock.yaml'), 'utf8');
    expect(pins).toContain('getOrder');
    expect(pins).not.toContain('deleteOrder');
  });

  test('guardrails of the example for tools mask what a tool gets and what it returns', async () => {
    const { stdout } = await callTool('order', '{"path":{"id":7}}');
    expect(stdout).toContain('order -> {"id":7,"customer":"<EMAIL_ADDRESS>"}');
    await callTool('add_note', '{"path":{"id":7},"body":{"text":"paid with 4111 1111 1111 1111"}}');
    const noted = api.received.find(({ target }) => target === '/orders/7/notes');
    expect(new URLSearchParams(noted?.body).get('text')).toBe('paid with <CREDIT_CARD>');
    expect(noted?.headers['x-api-key']).toBe('demo');
  });

  test('call-tool.mjs suggests a call with arguments that the tool accepts', async () => {
    const { stdout } = await callTool();
    const [, tool = '', args = ''] = /To call one: node \S+ \S+ (\w+) '(.+)'\n/.exec(stdout) ?? [];
    expect([tool, args]).toEqual(['order', '{"path":{"id":1}}']);
    expect((await callTool(tool, args)).code).toBe(0);
  });

  test('call-tool.mjs exits with 1 and prints the text of a result with isError', async () => {
    const { code, stdout, stderr } = await callTool('order', '{"path":{"id":404}}');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^order failed: HTTP 404 Not Found: /)]);
    expect(stdout).not.toContain('order ->');
  });

  test('call-tool.mjs says what to start where nothing listens', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const { code, stderr } = await callAt(`http://${address}/mcp`);
    expect([code, stderr]).toEqual([
      1,
      `error: nothing listens at ${address}: start a gateway there (npm start in a checkout, or agctl serve)\n`,
    ]);
  });

  test('call-tool.mjs waits for a server that joins the list later', async () => {
    const ready = join(folder.path, 'ready');
    const yaml = mcpConfig([chaos('slow', `--starts-with=${ready}`), chaos('well')]);
    await using busy = await gateway(yaml, { limits: { slowTargetStartWait: 1 } });
    const called = callAt(`${busy.url}/mcp`);
    await until(() => busy.accessLog.some((line) => line.includes('mcp.method.name=tools/list')));
    writeFileSync(ready, '');
    expect((await called).stdout).toContain('2 tools: slow_echo, well_echo\n');
  });

  test('call-tool.mjs exits with 1 for a tool that the example leaves out', async () => {
    const { code, stderr } = await callTool('deleteOrder', '{"path":{"id":7}}');
    expect([code, stderr]).toEqual([1, 'error: Unknown tool: deleteOrder\n']);
    expect(api.received.some(({ method }) => method === 'DELETE')).toBe(false);
  });
});
