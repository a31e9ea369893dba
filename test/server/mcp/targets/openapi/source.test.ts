import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../../../src/server/config/load.ts';
import { findProblems } from '../../../../../src/server/runtime/find-problems.ts';
import { mcpConfig } from '../../../../kit/config.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway, type TestGateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, openSession, post } from '../../../../kit/mcp.ts';
import { modern } from '../../../../kit/modern.ts';
import { openApi } from '../../../../kit/openapi.ts';
import { until } from '../../../../kit/until.ts';
import { type Answer, httpUpstream } from '../../../../kit/upstream.ts';

const documentOf = (operationId: string): string =>
  JSON.stringify(openApi({ '/a': { get: { operationId } } }));
const config = (schema: unknown, rest: object = {}): string =>
  mcpConfig([{ name: 'api', openapi: { schema, host: 'http://localhost:1', ...rest } }]);

async function toolNames({ url }: TestGateway): Promise<string[]> {
  const session = await openSession(`${url}/mcp`);
  const { result } = await session.request('tools/list');
  return result.tools.map(({ name }: { name: string }) => name);
}

async function problemsOf(yaml: string, folder: string) {
  const loaded = loadConfigText(yaml, 'test.yaml', {});
  return (await findProblems(loaded, { folder, env: {} })).filter(({ severity }) => severity === 'error');
}

describe('the document of an OpenAPI target', () => {
  test('a document inside the configuration is one of its values, with dollar signs doubled', async () => {
    const yaml = `
gateways:
  default:
    port: 0
    routes:
    - backends:
      - mcp:
          targets:
          - name: api
            openapi:
              host: localhost:1
              schema:
                openapi: 3.1.0
                paths:
                  /a:
                    post:
                      operationId: op
                      requestBody: { $$ref: '#/components/requestBodies/R' }
                components:
                  requestBodies:
                    R: { required: true, content: { application/json: { schema: { type: object } } } }
`;
    await using gate = await gateway(yaml);
    expect(await toolNames(gate)).toEqual(['op']);
  });

  test('a file is found relative to the configuration, and read again after it has changed', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'api.json');
    await writeFile(file, documentOf('first'));
    await using gate = await gateway(config({ file: './api.json' }), { folder: folder.path });
    expect(await toolNames(gate)).toEqual(['first']);
    await writeFile(file, documentOf('second1'));
    expect(await toolNames(gate)).toEqual(['second1']);
    await writeFile(file, '{"openapi":');
    expect(await toolNames(gate)).toEqual(['second1']);
    expect(gate.log.some((line) => line.includes('the earlier one is used'))).toBe(true);
  });

  test.each(['2025-06-18', '2026-07-28'])(
    'a client of revision %s that lists again sees a changed document',
    async (version) => {
      await using folder = await temporaryFolder();
      const file = join(folder.path, 'api.json');
      await writeFile(file, documentOf('first'));
      await using gate = await gateway(config({ file: 'api.json' }), { folder: folder.path });
      const url = `${gate.url}/mcp`;
      const session = version === '2026-07-28' ? undefined : await openSession(url);
      const listed = async (): Promise<string> =>
        (await (session?.request('tools/list') ?? modern(url, 'tools/list'))).result.tools[0].name;
      expect(await listed()).toBe('first');
      await writeFile(file, documentOf('second1'));
      expect(await listed()).toBe('second1');
    },
  );

  test.each([
    ['a file that does not exist', { file: './missing.json' }, 'AGW0107', 'file not found', 'schema.file'],
    ['a folder', { file: './folder' }, 'AGW0104', 'is not a regular file', 'schema.file'],
    [
      'a file that is not a document',
      { file: './notes.txt' },
      'AGW0104',
      'expected an OpenAPI document',
      'schema.file',
    ],
    ['an inline text', 'petstore.json', 'AGW0104', 'expected an OpenAPI document', 'schema'],
    ['a URL that is not http', { url: 'file:///etc/passwd' }, 'AGW0104', '', 'schema.url'],
  ])('config validate reports %s at its place', async (_, schema, code, message, place) => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, 'folder'));
    await writeFile(join(folder.path, 'notes.txt'), 'secret notes');
    const problems = await problemsOf(config(schema), folder.path);
    expect(problems).toMatchObject([{ code }]);
    expect(problems[0]?.message).toContain(message);
    expect(JSON.stringify(problems)).not.toContain('secret notes');
    expect(problems[0]?.path.join('.')).toContain(place);
  });

  test('config validate reports a file that does not exist also if other keys of the target are wrong', async () => {
    await using folder = await temporaryFolder();
    const problems = await problemsOf(config({ file: './missing.json' }, { unknown: 1 }), folder.path);
    expect(problems.map(({ code }) => code).sort()).toEqual(['AGW0101', 'AGW0107']);
  });

  test.each([
    ['no scheme that is http', { host: 'ftp://x' }, 'invalid scheme'],
    ['credentials', { host: 'http://user:password@x' }, 'credentials in a URL'],
    ['a port without a path', { host: 'x', port: 1 }, '`port` and `path` must be set together'],
    [
      'a header about the connection',
      { headers: { 'Transfer-Encoding': 'chunked' } },
      '`Transfer-Encoding` is not a header',
    ],
    ['a header with a line break', { headers: { 'x-key': 'a\nb' } }, 'the value of header `x-key`'],
  ])('config validate reports %s', async (_, rest, message) => {
    const problems = await problemsOf(config(documentOf('op'), rest), '/');
    expect(problems.map((problem) => problem.message).join()).toContain(message);
    expect(JSON.stringify(problems)).not.toContain('user:password@x');
  });

  test('host:port means HTTP, and HTTPS on port 443', async () => {
    const endpoints = [];
    for (const host of ['localhost:1', 'localhost:443', '[::1]:1']) {
      const problems = await problemsOf(config(documentOf('op'), { host }), '/');
      endpoints.push(problems);
    }
    expect(endpoints).toEqual([[], [], []]);
  });

  const serving = (answer: Answer) => httpUpstream(answer);

  test('a document at a URL is fetched for the first session, once for concurrent ones', async () => {
    await using server = await serving((_, response) => response.end(documentOf('remote')));
    await using gate = await gateway(config({ url: `http://${server.address}/v1/openapi.json?full=1` }));
    expect(server.received).toHaveLength(0);
    const names = await Promise.all([toolNames(gate), toolNames(gate), toolNames(gate)]);
    expect(names).toEqual([['remote'], ['remote'], ['remote']]);
    expect(server.received.map(({ target }) => target)).toEqual(['/v1/openapi.json?full=1']);
  });

  test.each([
    [
      'a failed status',
      (response: Parameters<Answer>[1]) => response.writeHead(503).end(),
      'the server answered HTTP 503',
    ],
    [
      'a redirect',
      (response: Parameters<Answer>[1]) => response.writeHead(301, { location: '/x' }).end(),
      'redirects are not followed',
    ],
    [
      'a text that is no document',
      (response: Parameters<Answer>[1]) => response.end('<html>'),
      'expected an OpenAPI document',
    ],
    [
      'a document over 16 MiB',
      (response: Parameters<Answer>[1]) => response.end('x'.repeat(17 * 1024 * 1024)),
      'it is larger than 16777216 bytes',
    ],
  ])('a session does not start without its only document: %s', async (_, answer, message) => {
    await using server = await serving((_request, response) => answer(response));
    await using gate = await gateway(config({ url: `http://${server.address}/` }));
    const reply = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(reply.status).toBe(500);
    expect(reply.text).toContain(message);
  });

  test('a document that could not be fetched is fetched again for a later session', async () => {
    let isUp = false;
    await using server = await serving((_, response) => {
      if (isUp) response.end(documentOf('remote'));
      else response.writeHead(503).end();
    });
    await using gate = await gateway(config({ url: `http://${server.address}/` }));
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).status).toBe(500);
    isUp = true;
    expect(await toolNames(gate)).toEqual(['remote']);
  });

  test('an expired document is fetched again in the background, and kept if that fails', async () => {
    let current: string | undefined = 'first';
    await using server = await serving((_, response) => {
      if (current === undefined) response.writeHead(503).end();
      else response.end(documentOf(current));
    });
    await using gate = await gateway(config({ url: `http://${server.address}/` }), {
      limits: { openApiLifetime: -1 },
    });
    expect(await toolNames(gate)).toEqual(['first']);
    current = 'second';
    await until(async () => (await toolNames(gate))[0] === 'second');
    current = undefined;
    const warning = 'could not be fetched again; the earlier one is used';
    await until(async () => {
      expect(await toolNames(gate)).toEqual(['second']);
      return gate.log.some((line) => line.includes(warning));
    });
  });

  test('headers of the configuration are redacted, and not sent to the server of the document', async () => {
    await using server = await serving((_, response) => response.end(documentOf('remote')));
    await using gate = await gateway(
      config({ url: `http://${server.address}/` }, { headers: { 'x-api-key': 'very-secret-key' } }),
      { admin: true },
    );
    await toolNames(gate);
    expect(server.received[0]?.headers).not.toHaveProperty('x-api-key');
    const dump = await fetch(`${gate.admin}/config_dump`).then((response) => response.text());
    expect(dump).toContain('api');
    expect(dump).not.toContain('very-secret-key');
    await until(() => gate.accessLog.length > 0);
    expect([...gate.accessLog, ...gate.log].join()).not.toContain('very-secret-key');
  });
});
