import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';

const VALUE = 'V4lueOfACredential';
const JWT = `eyJhbGciOiJub25lIn0.eyJzdWIiOiJub2JvZHkifQ.${'c2ln'.repeat(8)}`;

/** Mistakes on lines with credentials: in the quoted value, beside it and around it. */
const WRONG = `
gateways:
  default:
    port: 3000
    routes:
      - backends:
          - mcp:
              targets:
                - { name: a, mcp: { host: "ftp.example/mcp?api_key=${VALUE}" } }
                - { name: b, mcp: { host: "https://b.example/mcp?code=${VALUE}", prot: 1 } }
                - { name: c, mcp: { host: "https://user:${VALUE}@c.example/mcp" } }
                - { name: d, mcp: { host: "https://d.example/${JWT}", prot: 1 } }
`;

describe('agctl config validate', () => {
  test.each(['text', 'concise', 'json', 'github', 'sarif'])(
    'config validate shows no credentials of URLs with -o %s',
    async (format) => {
      await using folder = await temporaryFolder();
      writeFileSync(join(folder.path, 'wrong.yaml'), WRONG);
      const { code, stdout, stderr } = await cli(
        ['config', 'validate', '-o', format, join(folder.path, 'wrong.yaml')],
        {
          cwd: folder.path,
        },
      );
      const said = stdout + stderr;
      expect(code).toBe(1);
      expect(said).toContain('ftp.example/mcp?api_key=<redacted>');
      expect(said).not.toContain(VALUE);
      expect(said).not.toContain(JWT);
    },
  );

  test('config validate gives the position of a problem in a file that the configuration names', async () => {
    await using folder = await temporaryFolder();
    const catalog = { providers: { p: { models: { m: { rates: { input: '-1' } } } } } };
    writeFileSync(join(folder.path, 'prices.json'), JSON.stringify(catalog));
    writeFileSync(join(folder.path, 'broken.json'), '{\n  "a" 1}');
    writeFileSync(
      join(folder.path, 'gateway.yaml'),
      'config: { modelCatalog: [{ file: prices.json }, { file: broken.json }] }\ngateways: {}\n',
    );
    const { stdout, stderr } = await cli(['config', 'validate', join(folder.path, 'gateway.yaml')], {
      cwd: folder.path,
    });
    expect(stdout + stderr).toContain('providers.p.models.m.rates.input');
    expect(stdout + stderr).toContain('is not valid JSON (line 2, column 7)');
  });
});

describe('agctl check', () => {
  test('check shows no credentials of URLs', async () => {
    await using folder = await temporaryFolder();
    const target = { name: 'a', mcp: { host: `https://a.example/mcp?api_key=${VALUE}` } };
    const routes = [{ backends: [{ mcp: { targets: [target] } }] }];
    writeFileSync(
      join(folder.path, 'gateway.yaml'),
      JSON.stringify({ gateways: { default: { port: 0, routes } } }),
    );
    for (const format of ['text', 'json']) {
      const { stdout } = await cli(
        ['check', '-f', join(folder.path, 'gateway.yaml'), '--offline', '-o', format],
        {
          cwd: folder.path,
        },
      );
      expect(stdout).toContain('https://a.example/mcp?api_key=<redacted>');
      expect(stdout).not.toContain(VALUE);
    }
  });
});
