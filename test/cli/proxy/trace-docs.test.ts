import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { cli } from '../../kit/cli.ts';
import { startIdp } from '../../kit/idp.ts';
import { openSession } from '../../kit/mcp.ts';
import { freePort } from '../../kit/ports.ts';
import { serve } from '../../kit/process.ts';
import { hasTerminal, terminal } from '../../kit/terminal.ts';

// The whole way, all parts real: `agctl serve` with the configuration of the specification, its admin server, `agctl
// proxy` on a terminal. `UPDATE_GOLDEN=1` writes the screens into docs/trace.md.

const DOCS = new URL('../../../docs/trace.md', import.meta.url);
const CHAOS = fileURLToPath(new URL('../../kit/chaos-child.mjs', import.meta.url));

const config = (port: number, admin: number, issuer: string): string => `# yaml-language-server: $schema=x
config:
  adminAddr: 127.0.0.1:${admin}
gateways:
  default:
    port: ${port}
    protocol: HTTP
    routes:
      - name: tools
        matches:
          - path: { pathPrefix: /mcp }
        backends:
          - mcp:
              targets:
                - name: everything
                  stdio: { cmd: ${process.execPath}, args: [${CHAOS}] }
        policies:
          cors:
            allowOrigins: ["*"]
            exposeHeaders: [Mcp-Session-Id]
          mcpAuthentication:
            mode: strict
            issuer: ${issuer}
            audiences: [mcp-client]
            provider:
              idpx: {}
            resourceMetadata:
              resource: http://127.0.0.1:${port}/mcp
          authorization:
            rules:
              - jwt.azp == "inspector"
              - '"tools" in jwt.realm_access.roles'
      - name: health
        matches:
          - path: { exact: /healthz }
        policies:
          directResponse: { status: 200 }
`;

describe.skipIf(!hasTerminal)('traces as in the documentation', () => {
  test('the documented trace of a tool call, of a denied call and of a saved file works', {
    timeout: 120_000,
  }, async () => {
    await using idp = await startIdp().then((started) =>
      Object.assign(started, { [Symbol.asyncDispose]: () => started.upstream.close() }),
    );
    const [port, admin] = [await freePort(), await freePort()];
    await using _gateway = await serve(config(port, admin, idp.issuer), {
      env: { ADMIN_ADDR: undefined },
    });
    await using term = await terminal();
    const shots: [title: string, screen: string][] = [];
    const shot = async (title: string, pattern: RegExp | string): Promise<string> => {
      const screen = await term.shows(pattern);
      shots.push([title, screen.trimEnd()]);
      return screen;
    };
    const bearer = (roles: string[]) => ({
      authorization: `Bearer ${idp.token({ sub: 'ann', azp: 'inspector', realm_access: { roles } })}`,
    });
    const url = `http://127.0.0.1:${port}/mcp`;
    const ports = { port, admin };
    const session = await openSession(url, bearer(['tools']));

    await term.agctl([
      'proxy',
      'trace',
      '--admin',
      `127.0.0.1:${admin}`,
      '--match',
      'request.method == "POST"',
      '--save',
      'trace.jsonl',
    ]);
    await shot('Waiting', /waiting {2}00:0\d/);
    await session.request('tools/call', { name: 'echo', arguments: { text: 'hi' } });
    await term.shows('● done');
    await term.press('G');
    const allowed = await term.shows(/▸ . +[\d.]+ {2}done/);
    expect(allowed).toMatch(/POST \/mcp {2}tools\/call echo {2}sub=ann +200/);
    expect(allowed).toMatch(/✓ route tools .*✓ authorization/);

    await term.press('n');
    await term.shows('◌ waiting');
    await openSession(url, bearer(['guest'])).catch(() => undefined);
    await term.shows('● done');
    const denied = await shot('A call that a rule denies', /▸ ✗ .*authz/);
    expect(denied).toMatch(/403, denied by authorization/);
    expect(denied).toMatch(/config\.yaml:3\d/);

    await term.press('k');
    const detail = await term.shows('Explained: cel');
    expect(detail).toContain('jwt.realm_access.roles = ["guest"]');
    await term.press('q');
    await term.shows('code 0');

    await term.agctl(['proxy', 'trace', '--file', 'trace.jsonl']);
    await term.shows('● saved trace');
    await term.press('[');
    await term.shows('tools/call echo');
    await term.press('t');
    await term.shows('Time: ');
    await term.press('q');
    await term.shows('code 0');

    const routes = await cli(['proxy', 'config', 'routes', '--admin', `127.0.0.1:${admin}`]);
    expect(routes.stdout).toMatch(/tools +\/mcp\* +mcp \(everything\) +.*mcpAuthentication.*\n/);
    for (const command of [
      ['config', 'all'],
      ['config', 'backends'],
      ['log'],
      ['log', '--set', 'mcp=debug'],
      ['log', '--reset'],
      ['memory'],
      ['tasks'],
    ]) {
      const { code, stdout, stderr } = await cli(['proxy', ...command, '--admin', `127.0.0.1:${admin}`]);
      // MCP servers have no endpoint row, and the output says so.
      const note = command.includes('backends') ? expect.stringContaining('(1) have no row') : '';
      expect([command, code, stderr, stdout.length > 0]).toEqual([command, 0, note, true]);
    }
    expect(await cli(['proxy', 'shutdown', '--admin', `127.0.0.1:${admin}`])).toMatchObject({
      code: 0,
      stdout: 'shutdown now\n',
    });
    expect((await _gateway.finished).code).toBe(0);
    if (process.env['UPDATE_GOLDEN'] !== undefined) writeDocs(shots, ports);
    const docs = readFileSync(DOCS, 'utf8');
    for (const [title] of shots) expect(docs).toContain(`### ${title}\n`);
    // The other screens show times, whose lengths change what is truncated.
    const waiting = usual(shots[0]?.[1] ?? '', ports).replace(/00:0\d/, '00:00');
    expect(docs).toContain(`### Waiting\n\n\`\`\`text\n${waiting}\n\`\`\`\n`);
  });
});

interface Ports {
  readonly port: number;
  readonly admin: number;
}

/** The screen with the default ports and an unchanged number of columns. */
function usual(screen: string, { port, admin }: Ports): string {
  return screen
    .replaceAll(`:${admin}`, ':15000'.padEnd(String(admin).length + 1))
    .replaceAll(`:${port}`, ':3000'.padEnd(String(port).length + 1));
}

/** Replaces the text between the markers in docs/trace.md. */
function writeDocs(shots: readonly (readonly [string, string])[], ports: Ports): void {
  const text = readFileSync(DOCS, 'utf8');
  const screens = shots
    .map(
      ([title, screen]) =>
        `### ${title}\n\n\`\`\`text\n${usual(screen, ports).replace(/00:0\d/, '00:00')}\n\`\`\`\n`,
    )
    .join('\n');
  writeFileSync(
    DOCS,
    text.replace(
      /(<!-- screens -->\n)[\s\S]*(<!-- end -->)/,
      (_, start: string, end: string) => `${start}\n${screens}\n${end}`,
    ),
  );
}
