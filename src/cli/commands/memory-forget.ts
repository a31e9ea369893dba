import { resolve } from 'node:path';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { elementsOf, isRecord, membersOf, stringIn, textIn } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context, Run } from '../context.ts';
import { asCalled } from '../invocation.ts';
import { membersIn, type RestOptions, request, unexpected } from '../memory/rest.ts';

interface Options extends RestOptions {
  readonly operands?: readonly string[];
  readonly token?: string;
  /** `true`: without a path. */
  readonly folder?: string | true;
}

/** Shows everything that mentions a name or text, or a docs folder has brought; with the token from there, deletes exactly that. */
export const run: Run<Options> = async ({ operands = [], token, folder, ...options }, context) => {
  const about = operands.join(' ');
  if ((about === '') !== (folder !== undefined))
    throw new CommandError('usage', 'memory forget: expected a name or text, or else --folder');
  if (folder === true) return listFolders(options, context);
  const path = folder === undefined ? undefined : resolve(context.cwd, folder);
  const what = path === undefined ? { about } : { folder: path };
  const body = JSON.stringify({ ...what, ...(token === undefined ? { preview: true } : { token }) });
  const response = await request(options, context, '/forget', { type: 'application/json', text: body });
  const erasure = erasureIn(await membersIn(response));
  print(erasure, context);
  const { counts, truncated, note } = erasure;
  const isEmpty = Object.values(counts).every((count) => count === 0);
  if (truncated) context.stderr.write('there is more than one call deletes: repeat the command afterwards\n');
  if (note !== undefined) context.stderr.write(`note: ${escapeControls(note)}\n`);
  if (isEmpty) context.stderr.write(path === undefined ? 'nothing mentions it\n' : 'it has no documents\n');
  else if (token === undefined) {
    const { namespace, memoryApiUrl: url } = options;
    const inNamespace = namespace === undefined ? '' : ` --namespace ${namespace}`;
    const at = url === undefined ? '' : ` --memory-api-url ${quoted(url)}`;
    const called = asCalled('agctl memory forget', context);
    context.stderr.write(
      `nothing is deleted yet; to delete this:\n  ${called} ${path === undefined ? quoted(about) : `--folder ${quoted(path)}`} --token ${erasure.token}${inNamespace}${at}\n`,
    );
  }
  return EXIT_CODES.ok.code;
};

/** The docs folders whose documents a backend has. */
async function listFolders(options: RestOptions, context: Context): Promise<number> {
  const { docsFolders } = await membersIn(await request(options, context, '/stats'));
  const folders = elementsOf(docsFolders).map(membersOf);
  for (const { path, isServed, isGone } of folders) {
    const state =
      isServed === true ? 'read now' : isGone === true ? 'does not exist any more' : 'not read now';
    context.stdout.write(`${escapeControls(textIn(path))}  (${state})\n`);
  }
  if (folders.length === 0) context.stderr.write('no documents of docs folders are stored\n');
  return EXIT_CODES.ok.code;
}

interface Erasure {
  readonly token: string;
  readonly deleted: boolean;
  readonly counts: Readonly<Record<string, number>>;
  readonly entities: readonly string[];
  readonly observations: readonly Readonly<Record<'entityName' | 'observation', string>>[];
  readonly turns: readonly Readonly<Record<'sessionId' | 'createdAt' | 'role' | 'excerpt', string>>[];
  readonly documents: readonly Readonly<Record<'title' | 'key', string>>[];
  readonly truncated: boolean;
  readonly note?: string;
}

/** What a backend says that it selects or has deleted. @throws CommandError */
function erasureIn(reply: Readonly<Record<string, unknown>>): Erasure {
  const { token, counts } = reply;
  // It becomes part of a command that the user is told to run.
  if (typeof token !== 'string' || !/^\w{1,64}$/.test(token) || !isRecord(counts)) throw unexpected();
  const textsOf = (value: unknown): string[] => elementsOf(value).map(textIn);
  const itemsOf = <Name extends string>(value: unknown, names: readonly Name[]): Record<Name, string>[] =>
    elementsOf(value).map((item) => {
      const found: Partial<Record<Name, string>> = {};
      for (const name of names) found[name] = textIn(membersOf(item)[name]);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each name was set
      return found as Record<Name, string>;
    });
  const note = stringIn(reply['note']);
  return {
    token,
    deleted: reply['deleted'] === true,
    counts: Object.fromEntries(
      Object.entries(counts).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
    ),
    entities: textsOf(reply['entities']),
    observations: itemsOf(reply['observations'], ['entityName', 'observation']),
    turns: itemsOf(reply['turns'], ['sessionId', 'createdAt', 'role', 'excerpt']),
    documents: itemsOf(reply['documents'], ['title', 'key']),
    truncated: reply['truncated'] === true,
    ...(note === undefined ? {} : { note }),
  };
}

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
  return /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
