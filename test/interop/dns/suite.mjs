// A machine of its own, as far as names go: in namespaces of users, network and mounts the tests are root, own port 53
// and have an /etc/resolv.conf that leads there. Nothing outside is touched.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const succeeds = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

export function missing() {
  if (process.platform !== 'linux') return 'it needs the namespaces of Linux';
  if (!succeeds('unshare', ['-rnm', 'true'])) return 'namespaces may not be made here (unshare -rnm)';
  if (!succeeds('ip', ['-V'])) return 'there is no ip (iproute2), which starts the loopback interface';
  return undefined;
}

// Two questions of 5 s each, as glibc does by itself.
const FILES = {
  '/etc/resolv.conf': 'nameserver 127.0.0.1\noptions timeout:5 attempts:2\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
  '/etc/hosts': '127.0.0.1 localhost\n127.0.0.1 from-hosts-file.test\n',
};

export async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-dns-'));
  const mounts = Object.entries(FILES).map(([path, text], index) => {
    const own = join(folder, String(index));
    writeFileSync(own, text);
    return `mount --bind ${own} ${realpathSync(path)}`;
  });
  const script = ['ip link set lo up', ...mounts, 'exec "$@"'].join(' && ');
  return {
    env: {},
    within: ['unshare', '-rnm', '--', 'sh', '-c', script, 'sh'],
    stop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}
