import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { certificateOf, GOOD_TLS } from '../../kit/certificates.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const program = process.env['H2SPEC'] ?? '';

/** Checks that fail, by name; with the number of all checks. */
async function checks(port: number): Promise<{ all: number; failed: string[]; output: string }> {
  await using folder = await temporaryFolder();
  const report = join(folder.path, 'report.xml');
  const output = await new Promise<string>((resolve) => {
    execFile(program, [String(port), report], { maxBuffer: 10_000_000 }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
  const cases = [
    ...readFileSync(report, 'utf8').matchAll(/<testcase\b([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g),
  ];
  const attribute = (text: string, name: string): string =>
    new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1] ?? '';
  const failed = cases
    .filter(([, , , body = '']) => /<(?:failure|error)\b/.test(body))
    .map(([, head = '']) => `${attribute(head, 'package')}: ${attribute(head, 'classname')}`);
  return { all: cases.length, failed, output };
}

const BODY = 'x'.repeat(100_000);

/** What of the checks `node:http2` fails by itself. */
async function failuresOfNode(): Promise<string[]> {
  const server = createSecureServer(certificateOf('good'), (_, response) => {
    response.on('error', () => undefined);
    response.end(BODY);
  });
  server.on('sessionError', () => undefined);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { failed } = await checks((server.address() as AddressInfo).port);
  server.close();
  return failed;
}

test('a port with TLS passes every check for HTTP/2 servers that node:http2 passes by itself', async () => {
  await using upstream = await httpUpstream((_, response) => response.end(BODY));
  const route = { backends: [{ host: upstream.address }] };
  const yaml = JSON.stringify({ gateways: { default: { port: 0, tls: GOOD_TLS, routes: [route] } } });
  await using gate = await gateway(yaml);
  const [{ all, failed, output }, ofNode] = await Promise.all([checks(gate.port), failuresOfNode()]);
  console.log(
    `h2spec: ${all - failed.length} of ${all} checks pass; node:http2 alone fails ${ofNode.length}`,
  );
  expect(all, output.slice(-2000)).toBeGreaterThan(140);
  expect(
    failed.filter((check) => !ofNode.includes(check)),
    output.slice(-6000),
  ).toEqual([]);
  // Frames on closed streams and priorities, which nghttp2 ignores (RFC 9113 §5.1, §5.3.2), and three that end the connection.
  expect(ofNode.length).toBeLessThan(10);
});
