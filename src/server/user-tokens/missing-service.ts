import type { Problem, RuntimeSettings } from '../kernel/compile-context.ts';

const HELP: Readonly<Record<string, string>> = {
  'config.database': 'set `config.database.url`, for example to `sqlite://./agctl.db`',
  'config.session.key':
    'set `config.session.key` to the output of `openssl rand -hex 32`: tokens are encrypted with it',
  'config.mcp.signIn': 'set `config.mcp.signIn.url` to the URL of the page on which users sign in',
};

/** Why `subject` cannot be used: users cannot sign in without these keys, or a reload has added them, which only a restart reads. */
export function missingService(
  subject: string,
  { signInLacks: { keys, areAdded } }: Pick<RuntimeSettings, 'signInLacks'>,
): Problem {
  const names = keys
    .map((key) => `\`${key}\``)
    .join(', ')
    .replace(/, ([^,]*)$/, ' and $1');
  const common = { code: 'AGW0105', atKey: true } as const;
  if (areAdded)
    return {
      ...common,
      message: `${subject} needs the new ${names}, which is read only at startup: restart the gateway`,
      help: 'until then, the previous configuration stays active; the file is valid for a restart',
    };
  return {
    ...common,
    message: `${subject} needs ${names}`,
    help: `${keys.map((key) => HELP[key]).join('; ')}; restart the gateway if it is running`,
  };
}
