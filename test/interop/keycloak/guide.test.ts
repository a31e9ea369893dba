import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { followGuide } from '../../guides/guide.ts';
import { freePort } from '../../kit/ports.ts';
import { admin, hasKeycloak } from './scene.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

test.skipIf(!hasKeycloak)(
  'the guide on Keycloak works with Keycloak and the realm that it describes',
  async () => {
    const guide = readFileSync(join(root, 'docs/guides/keycloak.md'), 'utf8');
    const [, realm = ''] = /<<'END'\n([\s\S]*?)\n *END\n/.exec(guide) ?? [];
    await admin.createRealm(JSON.parse(realm) as { realm: string });
    const server = join(root, 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js');
    await using followed = await followGuide('keycloak.md', {
      'http://127.0.0.1:8180': admin.url,
      3000: String(await freePort()),
      'cmd: npx, args: ["-y", "@modelcontextprotocol/server-filesystem", "./files"]': `cmd: node, args: ["${server}", "./files"]`,
    });
    const [, checked, refused, answered] = followed.printed;
    expect(checked).not.toContain('✗');
    expect(refused).toContain('401');
    expect(answered).toContain('"serverInfo"');
    expect(answered).toContain('200   the token is valid');
  },
  // Six commands of a reader, against a server that may still be compiling its classes.
  300_000,
);
