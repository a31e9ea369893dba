import { durationSchema } from '../../core/duration.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { elementsOf, textIn } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import { readKeySettings } from '../../core/virtual-key.ts';
import type { Run } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { ask, notAnAdmin } from '../proxy/admin-client.ts';
import { answered, answeredKey } from '../proxy/answered.ts';

interface Options extends AdminOptions {
  readonly name: string;
  readonly models?: string;
  readonly budget?: readonly string[];
  readonly metadata?: readonly string[];
  readonly expires?: string;
  readonly output: 'text' | 'json';
}

export const run: Run<Options> = async (options, context) => {
  const { name, models, budget = [], metadata = [], expires, output } = options;
  const settings = {
    name,
    ...(models !== undefined && {
      allowedModels: models
        .split(',')
        .map((pattern) => pattern.trim())
        .filter((pattern) => pattern !== ''),
    }),
    metadata: Object.fromEntries(metadata.map(member)),
    budgets: budget,
    ...(expires !== undefined && { expiresAt: timeAfter(expires) }),
  };
  const checked = readKeySettings(settings, Date.now());
  if (typeof checked === 'string') throw new CommandError('usage', checked.replace(/^`budgets`/, '--budget'));
  const address = adminAddress(options, context);
  const { body } = await ask(address, {
    method: 'POST',
    path: '/api/keys',
    body: JSON.stringify(settings),
  });
  const answer = answered(address, body.toString('utf8'), '/api/keys');
  const key = answeredKey(address, answer, '/api/keys');
  const { secret } = answer;
  if (typeof secret !== 'string') throw notAnAdmin(address.shown, 'its /api/keys answers without a key');
  for (const warning of elementsOf(answer['warnings']))
    context.stderr.write(`warning: ${escapeControls(textIn(warning))}\n`);
  if (output === 'json') context.stdout.write(`${JSON.stringify({ secret, key }, null, 2)}\n`);
  else {
    context.stdout.write(`${escapeControls(secret)}\n`);
    context.stderr.write(
      `created \`${escapeControls(key.name)}\` (${escapeControls(key.id)}); the key above is not kept: store it now\n`,
    );
  }
  return EXIT_CODES.ok.code;
};

function member(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new CommandError(
    'usage',
    `--metadata ${escapeControls(text)}: expected name=value, such as team=red`,
  );
}

function timeAfter(text: string): string {
  const span = durationSchema.safeParse(text);
  if (span.success) return new Date(Date.now() + span.data).toISOString();
  throw new CommandError('usage', `--expires ${escapeControls(text)}: expected a time such as 30d or 12h`);
}
