import type { Admin } from './sources.ts';

/** Beginning of the text of such a refusal. */
export const READ_ONLY = 'the gateway is read-only';

/**
 * Why nothing that is stored may be changed through the admin server; undefined if it may: `config.storage.mode` is
 * `readOnly`, or UI_READ_ONLY is set to anything but `false`, which is upstream's variable. Both as at startup.
 */
export function readOnlyRefusal({ served }: Admin): string | undefined {
  const { config, env } = served().runtime;
  if ((env['UI_READ_ONLY'] || 'false') !== 'false')
    return `${READ_ONLY}: the environment variable UI_READ_ONLY is set`;
  if (config.config.storage.mode === 'readOnly')
    return `${READ_ONLY}: \`config.storage.mode\` is \`readOnly\``;
  return undefined;
}
