import type { CheckGroup } from './check.ts';
import { configuration } from './configuration.ts';
import { contract } from './contract.ts';
import { database } from './database.ts';
import { environment } from './environment.ts';
import { identityProvider } from './identity-provider.ts';
import { llmProviders } from './llm-providers.ts';
import { policyModules } from './policy-modules.ts';
import { ports } from './ports.ts';
import { store } from './shared-store.ts';
import { targets } from './targets.ts';
import { tools } from './tools.ts';

/** Every group of checks, in report order. A group is one file and one line here. */
export const checkGroups: readonly CheckGroup[] = [
  environment,
  configuration,
  ports,
  targets,
  tools,
  contract,
  llmProviders,
  identityProvider,
  store,
  database,
  policyModules,
];
