// Cost of the commands: a dump of 20 MB as JSON, YAML and a table, compared with a bare Node.js that parses and prints
// it.
// npm run bench cli [-- --rounds=5]. Requires a build.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const rounds = Number(/--rounds=(\d+)/.exec(process.argv.join(' '))?.[1] ?? 5);
const agctl = fileURLToPath(new URL('../bin/agctl.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'agctl-bench-'));
const file = join(folder, 'dump.json');

const backend = (index) => ({
  backend: {
    ai: {
      name: `llm:model:${index}`,
      namespace: '',
      target: {
        providers: [
          {
            active: {
              small: {
                endpoint: { name: 'small', provider: { oaiCompat: {} }, hostOverride: null, tokenize: false },
                info: {
                  health: 1,
                  requestLatency: 0.302,
                  pendingRequests: 0,
                  totalRequests: 7,
                  evictedUntil: null,
                },
                capacity: 1,
              },
            },
            rejected: {},
          },
        ],
      },
    },
  },
});
const dump = {
  workloads: [],
  services: [],
  binds: [],
  backends: Array.from({ length: 24_000 }, (_, index) => backend(index)),
};
const bare = `process.stdout.write(JSON.stringify(JSON.parse(require('node:fs').readFileSync(${JSON.stringify(file)}, 'utf8')), null, 2))`;
const CASES = {
  'bare node, JSON': ['-e', bare],
  'all -o json, pretty dump': [agctl, 'proxy', 'config', 'all', '--file', file, '-o', 'json'],
  'all -o json, compact dump': [agctl, 'proxy', 'config', 'all', '--file', `${file}.compact`, '-o', 'json'],
  'all -o yaml': [agctl, 'proxy', 'config', 'all', '--file', file, '-o', 'yaml'],
  backends: [agctl, 'proxy', 'config', 'backends', '--file', file],
};

try {
  const pretty = JSON.stringify(dump, null, 2);
  writeFileSync(file, pretty);
  writeFileSync(`${file}.compact`, JSON.stringify(dump));
  const times = Object.fromEntries(Object.keys(CASES).map((name) => [name, []]));
  // In turns, so that other load of the machine affects all of them.
  for (let round = 0; round < rounds; round++)
    for (const [name, args] of Object.entries(CASES)) {
      const before = performance.now();
      const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
      if (status !== 0) throw new Error(`${name} ended with ${status}`);
      times[name].push(performance.now() - before);
    }
  const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  const base = median(times['bare node, JSON']);
  console.log(`dump of ${(pretty.length / 1e6).toFixed(1)} MB, median of ${rounds}`);
  for (const [name, values] of Object.entries(times))
    console.log(
      `${name.padEnd(28)} ${Math.round(median(values))} ms   ${(median(values) / base).toFixed(2)} × bare`,
    );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
