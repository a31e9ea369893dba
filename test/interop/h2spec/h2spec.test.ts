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

const ON_CLOSED_STREAM =
  'RFC 9113 §5.1 permits this, RFC 7540 did not: nghttp2 ignores frames on closed streams';

/**
 * Checks that fail, each with the reason. `node:http2` fails them as well, with any of its options, because nghttp2 or its
 * binding does this without a callback (docs/decisions/0055).
 */
const KNOWN: Readonly<Record<string, string>> = {
  'http2/5.1: closed: Sends a DATA frame after sending RST_STREAM frame': ON_CLOSED_STREAM,
  'http2/5.1: closed: Sends a HEADERS frame after sending RST_STREAM frame': ON_CLOSED_STREAM,
  'http2/5.1: closed: Sends a DATA frame': ON_CLOSED_STREAM,
  'http2/5.1: closed: Sends a HEADERS frame': ON_CLOSED_STREAM,
  'http2/5.1.1: Sends stream identifier that is numerically smaller than previous':
    'RFC 9113 §5.1.1 asks for a connection error; nghttp2 ignores the frame, as those on closed streams',
  'http2/5.3.1: Sends PRIORITY frame that depend on itself':
    'RFC 9113 §5.3.2 deprecates priorities, and has no such error: nghttp2 ignores PRIORITY frames',
  'http2/6.3: Sends a PRIORITY frame with 0x0 stream identifier':
    'RFC 9113 §6.3 asks for a connection error; nghttp2 ignores PRIORITY frames',
  'http2/6.7: Sends a PING frame with ACK':
    'Node.js closes the connection on an acknowledgement of no PING, which RFC 9113 §5.4.1 permits',
  'http2/6.9.1: Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream':
    'Node.js closes the connection instead of the stream, which RFC 9113 §5.4.1 permits',
};

/** Checks that fail, by name; with the number of all checks that were run. */
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
  // Of a server without a limit for streams: the one that exceeds it.
  const skipped = cases.filter(([, , , body = '']) => body.includes('<skipped')).length;
  return { all: cases.length - skipped, failed: failed.sort(), output };
}

const BODY = 'x'.repeat(100_000);

/** The checks that `node:http2` fails by itself. */
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

test('a port with TLS passes every check for HTTP/2 servers, except those that fail for a known reason', async () => {
  await using upstream = await httpUpstream((_, response) => response.end(BODY));
  const route = { backends: [{ host: upstream.address }] };
  const yaml = JSON.stringify({ gateways: { default: { port: 0, tls: GOOD_TLS, routes: [route] } } });
  await using gate = await gateway(yaml);
  const { all, failed, output } = await checks(gate.port);
  console.log(`h2spec: ${all - failed.length} of ${all} checks pass`);
  expect(all, output.slice(-2000)).toBe(146);
  // One of the known that passes belongs to be removed from the list.
  expect(failed, output.slice(-6000)).toEqual(Object.keys(KNOWN).sort());
});

test('node:http2 by itself fails the same checks, so the reasons are not in the gateway', async () => {
  expect(await failuresOfNode()).toEqual(Object.keys(KNOWN).sort());
});
