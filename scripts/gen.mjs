// `npm run gen`: writes man/ from the command tree, the configuration schema and the error tables, and
// docs/compatibility.md from the names of another schema and what the configuration schema says of them; deploy/ gets a
// dashboard and alert rules from the metrics.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compatibilityPage } from '../src/cli/compatibility/page.ts';
import { referenceFiles } from '../src/cli/man.ts';
import { prometheusAlerts } from '../src/cli/monitoring/alerts.ts';
import { grafanaDashboard } from '../src/cli/monitoring/dashboard.ts';
import { root } from './run.mjs';

const folder = join(root, 'man');
const files = referenceFiles();
mkdirSync(folder, { recursive: true });
// Removes the page of a command that no longer exists.
for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name), { recursive: true });
for (const [name, text] of files) writeFileSync(join(folder, name), text);
writeFileSync(join(root, 'docs', 'compatibility.md'), compatibilityPage());
writeFileSync(join(root, 'deploy', 'grafana', 'agctl.json'), grafanaDashboard());
writeFileSync(join(root, 'deploy', 'prometheus', 'alerts.yaml'), prometheusAlerts());
process.stderr.write(
  `wrote ${files.size} files to man/, docs/compatibility.md, and deploy/{grafana,prometheus}\n`,
);
