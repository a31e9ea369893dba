import type { Diagnostic } from '../../core/diagnostic.ts';
import { secretPaths } from '../../core/schema/secrets.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { type Config, configSchema } from './schema.ts';

/** Warnings about what is valid but probably not wanted. */
export function lint(_config: Config, source: YamlSource): Diagnostic[] {
  return literalKeys(source);
}

/** Keys of others' services; what a stdio server gets in `env` is often no secret at all. */
const KEY_NAMES = new Set(['key', 'apiKey']);

function literalKeys(source: YamlSource): Diagnostic[] {
  return secretPaths(configSchema, source.value)
    .filter((path) => KEY_NAMES.has(String(path.at(-1))) && !source.isFromEnvironment(path))
    .map((path) => ({
      severity: 'warning',
      code: 'AGW0302',
      file: source.file,
      path,
      range: source.valueRange(path),
      message: 'literal secret in the configuration file',
      label: 'anyone who can read the file can read it',
      help: `read it from the environment: \`${String(path.at(-1))}: $NAME\``,
    }));
}
