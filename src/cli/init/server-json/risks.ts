import { onOneLine } from './fields.ts';

/**
 * What options in front of a package do to this machine. Whoever wrote the file chose them, and the package itself is not all that it
 * starts: docker can be told to give the container this machine, and npx to run another package.
 */

/** What is wrong with the value of an option, for people; undefined if it is harmless. */
type Check = (value: string, identifier: string) => string | undefined;

interface Options {
  /** Harmless options without a value, and with one. */
  readonly flags: readonly string[];
  readonly values: readonly string[];
  readonly checked: Readonly<Record<string, Check>>;
  /** Letters of options without a value, which may be written together with others. */
  readonly letters: string;
}

const always =
  (text: string): Check =>
  () =>
    text;

const LESS_SEPARATE = always('the container is less separate from this machine');
const ON_PORT = always('a port of this machine is opened for the container');

const volume: Check = (value) => {
  // A drive of Windows has a colon, too.
  const [, source = '', rest] = /^((?:[A-Za-z]:[\\/])?[^:]*)(?::(.*))?$/s.exec(value) ?? [];
  return rest === undefined ? undefined : boundFolder(source, /(?:^|[:,])ro(?:,|$)/.test(rest));
};

/** Docker reads the members as a line of CSV, with keys in any case. */
const mount: Check = (value, image) => {
  const members = new Map(
    value
      .replaceAll('"', '')
      .split(',')
      .map((each) => [each.replace(/=.*/s, '').trim().toLowerCase(), each.replace(/^[^=]*=?/s, '')]),
  );
  if (members.has('volume-opt')) return LESS_SEPARATE(value, image);
  if (members.get('type') === 'tmpfs') return undefined;
  const source = members.get('source') ?? members.get('src') ?? '';
  return boundFolder(source, members.has('readonly') || members.has('ro'));
};

/** Docker's own volumes have a name; everything else is a path. The user chooses what is a variable. */
function boundFolder(source: string, isReadOnly: boolean): string | undefined {
  if (source === '' || /^[A-Za-z0-9][\w.-]+$/.test(source) || isReference(source)) return undefined;
  return `the container reads${isReadOnly ? '' : ' and writes'} ${onOneLine(source)} of this machine`;
}

/** Anything but a name has options: `container:x`, `name=host,alias=x`. */
const network: Check = (value, image) => {
  if (value === 'host')
    return 'the container reaches every server of this machine, also those that listen on 127.0.0.1 only';
  return /^[\w.-]*$/.test(value) || isReference(value) ? undefined : LESS_SEPARATE(value, image);
};

const addedHost: Check = (value) =>
  value.includes('host-gateway') ? 'the container reaches servers of this machine' : undefined;

/** Whether a value is a variable and nothing else. */
export const isReference = (value: string): boolean => /^\$\{\w+(?::-)?\}$/.test(value);

/** A package by its name, perhaps with a version or extras, but not with an address. */
const otherPackage: Check = (value, identifier) =>
  value === identifier ||
  (value.startsWith(identifier) && /^[[@=<>~!][\w.=<>~!,*+[\]@-]*$/.test(value.slice(identifier.length)))
    ? undefined
    : `another package is installed: ${onOneLine(value)}`;

const otherRegistry =
  (usual: RegExp): Check =>
  (value) =>
    usual.test(value.replace(/(?<!\/)\/+$/, '')) ? undefined : `packages come from ${onOneLine(value)}`;

const pypi = otherRegistry(/^https:\/\/pypi\.org\/simple$/);
const nuget = otherRegistry(/^https:\/\/api\.nuget\.org(?:\/v3\/index\.json)?$/);
const npm = otherRegistry(/^https:\/\/registry\.npmjs\.(?:org|com)$/);

const OF_DOCKER: Options = {
  letters: 'itdq',
  flags: [
    '--init',
    '--read-only',
    '--quiet',
    '--detach',
    '--no-healthcheck',
    '--interactive',
    '--tty',
    '--rm',
  ],
  values: [
    ...[
      '-e',
      '--env',
      '--name',
      '-w',
      '--workdir',
      '--entrypoint',
      '--platform',
      '--pull',
      '-u',
      '--user',
      '-l',
      '--label',
    ],
    ...[
      '-h',
      '--hostname',
      '-m',
      '--memory',
      '--memory-swap',
      '-c',
      '--cpu-shares',
      '--cpus',
      '--tmpfs',
      '--cap-drop',
    ],
    ...['--stop-timeout', '--stop-signal', '--dns', '--shm-size', '--ulimit', '--pids-limit', '--restart'],
    ...['--gpus', '-a', '--attach', '--expose', '--network-alias'],
  ],
  checked: {
    '--privileged': (value) =>
      value === 'false' ? undefined : 'the container can do everything on this machine',
    ...{ '-v': volume, '--volume': volume, '--mount': mount, '--network': network, '--net': network },
    '--add-host': addedHost,
    ...{ '-p': ON_PORT, '--publish': ON_PORT, '-P': ON_PORT, '--publish-all': ON_PORT },
    ...{
      '--cap-add': LESS_SEPARATE,
      '--device': LESS_SEPARATE,
      '--pid': LESS_SEPARATE,
      '--ipc': LESS_SEPARATE,
    },
    ...{ '--userns': LESS_SEPARATE, '--uts': LESS_SEPARATE, '--cgroupns': LESS_SEPARATE },
    '--security-opt': (value, image) =>
      /^no-new-privileges\b/.test(value) ? undefined : LESS_SEPARATE(value, image),
  },
};

const OF: Readonly<Record<string, Options>> = {
  docker: OF_DOCKER,
  podman: OF_DOCKER,
  npx: {
    letters: 'yq',
    flags: ['--yes', '--quiet', '--silent', '--prefer-offline', '--no-audit', '--no-fund'],
    values: ['--loglevel'],
    checked: { '-p': otherPackage, '--package': otherPackage, '--registry': npm },
  },
  uvx: {
    letters: 'qvn',
    flags: ['--quiet', '--verbose', '--no-cache', '--refresh', '--isolated', '--no-progress', '--native-tls'],
    values: ['-p', '--python', '--prerelease'],
    checked: {
      ...{
        '--from': otherPackage,
        '-i': pypi,
        '--index-url': pypi,
        '--index': pypi,
        '--default-index': pypi,
      },
      '--extra-index-url': pypi,
    },
  },
  dnx: {
    letters: 'y',
    flags: ['--yes', '--prerelease', '--interactive', '--allow-roll-forward'],
    values: ['-v', '--verbosity'],
    checked: { '--source': nuget, '-s': nuget, '--add-source': nuget },
  },
};

/** What the options of a command mean for this machine, for people; empty if they are known to be harmless. */
export function optionRisks(
  command: string,
  words: readonly string[],
  identifier: string,
): readonly string[] {
  const options = Object.hasOwn(OF, command) ? OF[command] : undefined;
  if (options === undefined) return [];
  const found: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    if (!word.startsWith('-')) {
      if (!isReference(word))
        found.push(`\`${onOneLine(word)}\` stands where ${command} expects what to run`);
      continue;
    }
    const { name, value } = optionIn(word, options);
    const check = Object.hasOwn(options.checked, name) ? options.checked[name] : undefined;
    const isFlag =
      options.flags.includes(name) || name === '' || /^(?:--privileged|--publish-all|-P)$/.test(name);
    const next = words[at + 1];
    const takesNext =
      !isFlag &&
      value === undefined &&
      next !== undefined &&
      (isKnown(name, options) || !next.startsWith('-'));
    if (takesNext) at += 1;
    const given = value ?? (takesNext ? next : '');
    const why = check === undefined ? undefined : check(given, identifier);
    if (why !== undefined) found.push(`\`${onOneLine(takesNext ? `${word} ${given}` : word)}\`: ${why}`);
    else if (check === undefined && !isFlag && !options.values.includes(name))
      found.push(`\`${onOneLine(word)}\` of ${command} is not known to be harmless`);
  }
  return found;
}

const isKnown = (name: string, { checked, values }: Options): boolean =>
  Object.hasOwn(checked, name) || values.includes(name);

/** The option of a word: `--name`, `--name=value`, `-n`, `-nvalue`, `-itn value`. An empty name has letters without a value only. */
function optionIn(
  word: string,
  { letters }: Options,
): { readonly name: string; readonly value: string | undefined } {
  const [, long, value] = /^(--[^=]*)(?:=(.*))?$/s.exec(word) ?? [];
  if (long !== undefined) return { name: long, value };
  const rest = word.slice(1).replace(new RegExp(`^[${letters}]+`), '');
  if (rest === '') return { name: '', value: undefined };
  return {
    name: `-${rest.slice(0, 1)}`,
    value: rest.length === 1 ? undefined : rest.slice(1).replace(/^=/, ''),
  };
}

/** Registries of images that many publishers use; an image of another one has an address of its publisher's own. */
const IMAGE_HOSTS =
  /^(?:docker\.io|index\.docker\.io|ghcr\.io|quay\.io|gcr\.io|mcr\.microsoft\.com|public\.ecr\.aws|registry\.gitlab\.com|[\w-]+-docker\.pkg\.dev|\w+\.azurecr\.io)$/;

/** Whether an image comes from a registry of its publisher's own; undefined for the usual ones. */
export function imageRisk(image: string): string | undefined {
  const [host = ''] = image.split('/');
  const isHost = image.includes('/') && /[.:]|^localhost$/.test(host);
  return isHost && !IMAGE_HOSTS.test(host) ? `the image comes from ${onOneLine(host)}` : undefined;
}

/** What a plain address means; undefined for one of this machine. */
export function plainRisk(host: string): string | undefined {
  const filled = host.replaceAll(/\$\{\w+(?::-)?\}/g, 'x');
  const url = URL.canParse(filled) ? new URL(filled) : undefined;
  if (url?.protocol !== 'http:' || /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname)) return undefined;
  return `${onOneLine(host)} is not encrypted: others on the way can read what is sent, credentials too, and change what is answered`;
}
