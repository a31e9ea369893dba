import type { Problem, RuntimeSettings } from '../kernel/compile-context.ts';

/** Why `key` cannot be used: there is no `config.database`, or a reload has added it, which only a restart opens. */
export function missingDatabase(
  { isDatabaseAdded }: Pick<RuntimeSettings, 'isDatabaseAdded'>,
  key: string,
  purpose: string,
): Problem {
  const common = { code: 'AGW0105', atKey: true } as const;
  if (isDatabaseAdded)
    return {
      ...common,
      message: `${key} needs the new \`config.database\`, which is read only at startup: restart the gateway`,
      help: 'until then, the previous configuration stays active; the file is valid for a restart',
    };
  return {
    ...common,
    message: `${key} needs a database for ${purpose}`,
    help: 'set `config.database.url`, for example to `sqlite://./agctl.db`, and restart the gateway if it is running',
  };
}
