// `npm run gen`: writes man/ from the command tree, the configuration schema and the error tables, and
// docs/compatibility.md from the names of another schema and what the configuration schema says of them; deploy/ gets a
// dashboard and alert rules from the metrics; src/library gets types from the schema and the record of requests, and
// docs/library-api.md is written from its docstrings.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compatibilityPage } from '../src/cli/compatibility/page.ts';
import { referenceFiles } from '../src/cli/man.ts';
import { prometheusAlerts } from '../src/cli/monitoring/alerts.ts';
import { grafanaDashboard } from '../src/cli/monitoring/dashboard.ts';
import { root } from './run.mjs';
import { apiReference } from './types/api-reference.ts';
import { configTypes } from './types/config-types.ts';
import { requestFactsTypes } from './types/request-facts.ts';

const folder = join(root, 'man');
const files = referenceFiles();
mkdirSync(folder, { recursive: true });
// Removes the page of a command that no longer exists.
for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name), { recursive: true });
for (const [name, text] of files) writeFileSync(join(folder, name), text);
writeFileSync(join(root, 'docs', 'compatibility.md'), compatibilityPage());
writeFileSync(join(root, 'deploy', 'grafana', 'agctl.json'), grafanaDashboard());
writeFileSync(join(root, 'deploy', 'prometheus', 'alerts.yaml'), prometheusAlerts());
writeFileSync(join(root, 'src/library/config-types.ts'), await configTypes());
writeFileSync(join(root, 'src/library/request-facts.ts'), requestFactsTypes());
writeFileSync(join(root, 'docs', 'library-api.md'), apiReference());
process.stderr.write(
  `wrote ${files.size} files to man/, docs/{compatibility,library-api}.md, src/library, and deploy/{grafana,prometheus}\n`,
);
