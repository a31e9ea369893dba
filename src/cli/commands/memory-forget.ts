import type { Erasure } from '../../adapter/memory/store.ts';
import { EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context, Run } from '../context.ts';
import { type RestOptions, request } from '../memory/rest.ts';

interface Options extends RestOptions {
  readonly operands: readonly string[];
  readonly token?: string;
}

/** Shows everything that mentions a name or text; with the token from there, deletes exactly that. */
export const run: Run<Options> = async ({ operands, token, ...options }, context) => {
  const about = operands.join(' ');
  const body = JSON.stringify(token === undefined ? { about, preview: true } : { about, token });
  const response = await request(options, context, '/forget', { type: 'application/json', text: body });
  const erasure = (await response.json()) as Erasure;
  print(erasure, context);
  const { counts, truncated, note } = erasure;
  const isEmpty = Object.values(counts).every((count) => count === 0);
  if (truncated) context.stderr.write('there is more than one call deletes: repeat the command afterwards\n');
  if (note !== undefined) context.stderr.write(`note: ${escapeControls(note)}\n`);
  if (isEmpty) context.stderr.write('nothing mentions it\n');
  else if (token === undefined) {
    const inNamespace = options.namespace === undefined ? '' : ` --namespace ${options.namespace}`;
    context.stderr.write(
      `nothing is deleted yet; to delete this:\n  agctl memory forget ${quoted(about)} --token ${erasure.token}${inNamespace}\n`,
    );
  }
  return EXIT_CODES.ok.code;
};

function print({ deleted, counts, ...parts }: Erasure, { stdout }: Context): void {
  const lines = [
    ...parts.entities.map((name) => `entity       ${name}`),
    ...parts.observations.map(({ entityName, observation }) => `observation  ${entityName}: ${observation}`),
    ...parts.turns.map(
      ({ sessionId, createdAt, role, excerpt }) =>
        `turn         ${sessionId} ${createdAt} ${role}: ${excerpt}`,
    ),
    ...parts.documents.map(({ title, key }) => `document     ${title} (${key})`),
  ];
  for (const line of lines) stdout.write(`${escapeControls(line.replace(/\s+/g, ' ').trim())}\n`);
  const sum = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${kind} ${count}`);
  if (sum.length > 0) stdout.write(`${deleted ? 'deleted' : 'selected'}: ${sum.join(', ')}\n`);
}

/** As one word of a POSIX shell. */
function quoted(text: string): string {
  return /^[\w.@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
