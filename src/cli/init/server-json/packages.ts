import { stringIn } from '../../../core/foreign.ts';
import { NotImported } from '../imported.ts';
import { literalText } from '../values.ts';
import { type Entry, entriesOf, memberOf, onOneLine, textOf } from './fields.ts';
import { type Argument, argumentsOf, type Inputs } from './inputs.ts';
import { imageRisk, isReference, optionRisks } from './risks.ts';
import type { Said } from './said.ts';

/** A package of `server.json`, with its checked name. */
interface Package {
  readonly identifier: string;
  /** Undefined if the file names none, or `latest`. */
  readonly version: string | undefined;
  /** Arguments of the command that gets the package, without those that would name the package again. */
  readonly runtime: readonly string[];
  readonly own: readonly string[];
  /** Names of the variables of `env`. */
  readonly variables: readonly string[];
  /** URL of a registry that is not the usual one. */
  readonly registry: string | undefined;
}

/** How packages of one registry are started. */
interface Launcher {
  /** Values of `runtimeHint`, the usual one first. */
  readonly commands: readonly string[];
  readonly registry: RegExp;
  readonly identifier: RegExp;
  /** What an identifier is, for people. */
  readonly expected: string;
  /** Arguments that the gateway adds itself, or that cannot be used by a process that nobody watches. */
  readonly dropped: RegExp;
  /** Variables that decide what the command itself downloads or runs. */
  readonly variables: RegExp;
  words(from: Package): readonly string[];
}

const DIGITS_FIRST = /^v?\d[\w.+!-]*$/;
/** Parts of a version that stand for several: `1.x`. */
const WILDCARD = /(?:^|\.)[xX](?:\.|$)/;
/** Of every program: where commands, libraries and settings are found, what runs before it, from where and how it downloads. */
const SYSTEM_VARIABLES =
  /^(?:PATH|HOME|USERPROFILE|APPDATA|XDG_.+|LD_.+|DYLD_.+|BASH_ENV|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_.+|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED))$/i;

const npm: Launcher = {
  commands: ['npx'],
  registry: /^https:\/\/registry\.npmjs\.(?:org|com)$/,
  identifier: /^(?:@[a-z0-9~][\w.~-]*\/)?[a-z0-9~][\w.~-]*$/i,
  expected: 'the name of an npm package, such as `@scope/name`',
  dropped: /^(?:-y|--yes)$/,
  variables: /^npm_config_/i,
  words({ identifier, version, runtime, own, registry }) {
    // The next word would be a shell command, whatever the package is.
    const shell = runtime.find((word) => /^(?:-c|--call)(?:=|$)/.test(word));
    if (shell !== undefined) throw new NotImported(`\`${shell}\` of npx runs a shell command`);
    const source = registry === undefined ? [] : [`--registry=${literalText(registry)}`];
    return ['-y', ...source, ...runtime, at(identifier, version), ...own];
  },
};

const pypi: Launcher = {
  commands: ['uvx'],
  registry: /^https:\/\/pypi\.org(?:\/simple)?$/,
  identifier: /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/i,
  expected: 'the name of a package of PyPI',
  dropped: /^$/,
  variables: /^(?:UV_|PIP_|PYTHON)/i,
  words({ identifier, version, runtime, own, registry }) {
    refuseRegistry(registry);
    // With `--from`, what follows is the name of its command.
    const isFrom = runtime.some((word) => /^--from(?:=|$)/.test(word));
    return [...runtime, isFrom ? identifier : at(identifier, version), ...own];
  },
};

/** Host, path, tag, digest (github.com/distribution/reference). */
const IMAGE =
  /^(?:[a-z0-9][a-z0-9.-]*(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*(?<tag>:\w[\w.-]{0,127})?(?<digest>@sha256:[a-f0-9]{64})?$/;

const oci: Launcher = {
  commands: ['docker', 'podman'],
  registry: /^https:\/\/(?:index\.)?docker\.io$/,
  identifier: IMAGE,
  expected: 'the name of an image, such as `ghcr.io/owner/name:1.2.3`',
  dropped: /^(?:run|-i|-t|-it|-ti|--interactive|--tty|--rm)(?:=true)?$/,
  variables: /^(?:DOCKER_|CONTAINER_|BUILDKIT_)/i,
  words({ identifier, version, runtime, own, variables, registry }) {
    const hasTag = IMAGE.exec(identifier)?.groups;
    const isNamed = hasTag?.['tag'] !== undefined || hasTag?.['digest'] !== undefined;
    const image = `${imageHost(identifier, registry)}${identifier}${isNamed || version === undefined ? '' : `:${version}`}`;
    const passed = new Set(
      runtime.map((word, index) => (isVariable(runtime, index) ? word.replace(/=.*/s, '') : '')),
    );
    const more = variables.filter((name) => !passed.has(name)).flatMap((name) => ['-e', name]);
    return ['run', '-i', '--rm', ...more, ...runtime, image, ...own];
  },
};

const nuget: Launcher = {
  commands: ['dnx'],
  registry: /^https:\/\/api\.nuget\.org(?:\/v3\/index\.json)?$/,
  identifier: /^\w[\w.-]*$/,
  expected: 'the id of a NuGet package',
  dropped: /^(?:-y|--yes)$/,
  variables: /^(?:DOTNET_|NUGET_)/i,
  words({ identifier, version, runtime, own, registry }) {
    refuseRegistry(registry);
    return [...runtime, at(identifier, version), '--yes', ...(own.length > 0 ? ['--', ...own] : [])];
  },
};

const LAUNCHERS: Readonly<Record<string, Launcher>> = { npm, pypi, oci, nuget };

const at = (identifier: string, version: string | undefined): string =>
  version === undefined ? identifier : `${identifier}@${version}`;

function refuseRegistry(registry: string | undefined): void {
  if (registry !== undefined)
    throw new NotImported(
      `it is in the registry ${onOneLine(registry)}: configure that registry, and write the target by hand`,
    );
}

/** The host of a registry in front of an image that names none. */
const imageHost = (identifier: string, registry: string | undefined): string =>
  registry === undefined || /^[^/]+[.:][^/]*\//.test(identifier) ? '' : `${new URL(registry).host}/`;

/** The registry of a package, by its current name or a former one. */
export function registryTypeOf(entry: Entry): string {
  const type = stringIn(memberOf(entry, 'registryType')) ?? stringIn(entry['registry_name']) ?? '?';
  return type === 'docker' ? 'oci' : onOneLine(type);
}

/** What a package is, for people. */
export function packageLabel(entry: Entry): string {
  const name = stringIn(memberOf(entry, 'identifier')) ?? stringIn(entry['name']) ?? '?';
  const version = stringIn(memberOf(entry, 'version'));
  const isNamed = version === undefined || name.includes('://') || name.endsWith(`:${version}`);
  return onOneLine(`${registryTypeOf(entry)} ${name}${isNamed ? '' : ` ${version}`}`);
}

/**
 * The `stdio` target of a package.
 *
 * @throws NotImported if the package cannot be started that way
 */
export function packageTarget(entry: Entry, inputs: Inputs, { notes, risks }: Said): Entry {
  const type = registryTypeOf(entry);
  const launcher = Object.hasOwn(LAUNCHERS, type) ? LAUNCHERS[type] : undefined;
  if (type === 'mcpb')
    throw new NotImported(
      'an MCP bundle is an archive that a desktop app installs; the gateway starts commands',
    );
  if (launcher === undefined)
    throw new NotImported(
      `packages of the registry \`${type}\` cannot be started; expected npm, pypi, oci or nuget`,
    );
  refuseTransport(entry);
  const identifier = identifierOf(entry, launcher);
  const version = versionOf(entry, launcher);
  const { command, notes: hints } = commandOf(entry, launcher);
  const env = environmentOf(entry, launcher, inputs);
  const runtime = runtimeWords(argumentsOf(entry, 'runtimeArguments', inputs), launcher, identifier);
  const words = launcher === oci ? withVariables(runtime, env) : runtime;
  const registry = registryOf(entry, launcher);
  const args = launcher.words({
    identifier,
    version,
    runtime: words,
    own: argumentsOf(entry, 'packageArguments', inputs).flatMap(({ words: own }) => own),
    variables: [...env.keys()],
    registry,
  });
  const resolved = words.map((word) => inputs.resolved(word));
  risks.push(...optionRisks(command, resolved, identifier), ...sourceRisks(launcher, identifier, registry));
  notes.push(
    ...hints,
    ...unpinned(identifier, version, launcher),
    ...unchecked(entry, command),
    ...repeated(entry),
  );
  return {
    stdio: {
      cmd: command,
      args,
      ...(env.size > 0 && { env: Object.fromEntries(env) }),
      // The first start downloads the package.
      warm: 1,
    },
  };
}

function sourceRisks(launcher: Launcher, identifier: string, registry: string | undefined): string[] {
  if (launcher !== oci)
    return registry === undefined ? [] : [`the package comes from ${onOneLine(registry)}`];
  return [imageRisk(`${imageHost(identifier, registry)}${identifier}`) ?? []].flat();
}

function refuseTransport(entry: Entry): void {
  const transport = memberOf(entry, 'transport');
  const { type, url }: Entry = typeof transport === 'object' && transport !== null ? { ...transport } : {};
  if (type === undefined || type === 'stdio') return;
  const where = typeof url === 'string' ? ` at ${onOneLine(url)}` : '';
  throw new NotImported(`it serves HTTP${where} instead of stdio: start it yourself, and add its URL`);
}

function identifierOf(entry: Entry, { identifier: pattern, expected }: Launcher): string {
  const identifier = textOf(entry, 'identifier') ?? textOf(entry, 'name');
  if (identifier === undefined) throw new NotImported('the package has no `identifier`');
  if (identifier.length > MOST_NAME || identifier.includes('..') || !pattern.test(identifier))
    throw new NotImported(`\`${onOneLine(identifier)}\` is not ${expected}`);
  return identifier;
}

const MOST_NAME = 255;

function versionOf(entry: Entry, launcher: Launcher): string | undefined {
  const version = textOf(entry, 'version');
  if (version === undefined || version === '' || version === 'latest') return undefined;
  const isTag = launcher === oci && /^\w[\w.-]{0,127}$/.test(version);
  if (version.length > MOST_NAME || (!isTag && (!DIGITS_FIRST.test(version) || WILDCARD.test(version))))
    throw new NotImported(`\`${onOneLine(version)}\` is not one version, such as \`1.2.3\``);
  return version;
}

/** `runtimeHint` chooses among commands that start the same package; no other command is ever started. */
function commandOf(entry: Entry, { commands }: Launcher): { command: string; notes: string[] } {
  const hint = textOf(entry, 'runtimeHint') ?? '';
  const [usual = ''] = commands;
  if (hint === '' || commands.includes(hint)) return { command: hint === '' ? usual : hint, notes: [] };
  if (entriesOf(entry, 'runtimeArguments').length > 0)
    throw new NotImported(
      `its \`runtimeArguments\` are for \`${onOneLine(hint)}\`, and it would be started with ${usual}`,
    );
  return { command: usual, notes: [`started with ${usual} instead of \`${onOneLine(hint)}\``] };
}

function registryOf(entry: Entry, launcher: Launcher): string | undefined {
  const written = textOf(entry, 'registryBaseUrl');
  const url = written?.replace(/(?<!\/)\/+$/, '');
  if (url === undefined || url === '' || launcher.registry.test(url)) return undefined;
  if (!/^https:\/\/[\w.-]+(?::\d{1,5})?(?:\/[\w./@~-]*)?$/.test(url))
    throw new NotImported(`its registry ${onOneLine(url)} is not an https URL`);
  return url;
}

function environmentOf(entry: Entry, launcher: Launcher, inputs: Inputs): Map<string, string> {
  const env = new Map<string, string>();
  for (const [index, input] of entriesOf(entry, 'environmentVariables').entries()) {
    const name = textOf(input, 'name') ?? '';
    if (!/^[A-Za-z_][\w.-]{0,127}$/.test(name))
      throw new NotImported(
        `\`environmentVariables[${index}].name\`: \`${onOneLine(name)}\` is not the name of a variable`,
      );
    const value = inputs.valueOf(input, { name, place: 'env', keepsOptionalSecrets: true });
    if (value === undefined) inputs.unset.push(name);
    if (value === undefined) continue;
    // What the user sets is the user's choice, if the file adds nothing to it.
    if (!isReference(inputs.resolved(value)) && decides(name, launcher))
      throw new NotImported(`it sets \`${name}\`, which changes what ${launcher.commands[0]} itself runs`);
    env.set(name, value);
  }
  return env;
}

/** Without what the gateway adds itself: publishers write whole commands (`run`, `-i`, `-y`, the package) or only a part. */
function runtimeWords(
  list: readonly Argument[],
  { dropped }: Launcher,
  identifier: string,
): readonly string[] {
  const kept: string[] = [];
  // An option that is written as a positional argument may have the next one as its value.
  let isOption = false;
  for (const { words, isPositional } of list) {
    const [word = ''] = words;
    if (dropped.test(word)) continue;
    if (isPositional && !isOption && namesPackage(word, identifier)) continue;
    isOption = isPositional && /^-[^=]*$/.test(word);
    kept.push(...words);
  }
  return kept;
}

function namesPackage(word: string, identifier: string): boolean {
  const base = identifier.replace(/@sha256:.*$/s, '').replace(/:[^/:]{0,128}$/, '');
  return word === identifier || word === base || word.startsWith(`${base}@`) || word.startsWith(`${base}:`);
}

/** Takes what the user provides out of `-e NAME=value`: every user of the machine can read a command line. */
function withVariables(words: readonly string[], env: Map<string, string>): readonly string[] {
  return words.map((word, index) => {
    const [, name, value] = (isVariable(words, index) && /^([A-Za-z_]\w*)=(.*)$/s.exec(word)) || [];
    if (name === undefined || value?.includes('${') !== true || decides(name, oci)) return word;
    env.set(name, value);
    return name;
  });
}

/** Whether a variable decides what a command itself downloads or runs. */
const decides = (name: string, { variables }: Launcher): boolean =>
  SYSTEM_VARIABLES.test(name) || variables.test(name);

/** Whether a word is the value of `-e`. */
const isVariable = (words: readonly string[], index: number): boolean =>
  /^(?:-e|--env)$/.test(words[index - 1] ?? '');

function unpinned(identifier: string, version: string | undefined, launcher: Launcher): string[] {
  const { tag, digest } = (launcher === oci ? IMAGE.exec(identifier)?.groups : undefined) ?? {};
  const isPinned = version !== undefined || digest !== undefined || (tag !== undefined && tag !== ':latest');
  return isPinned ? [] : ['the file names no version: each start may run another one'];
}

const unchecked = (entry: Entry, command: string): string[] =>
  memberOf(entry, 'fileSha256') === undefined
    ? []
    : [`\`fileSha256\` is not checked: ${command} downloads the package itself`];

const repeated = (entry: Entry): string[] =>
  [...entriesOf(entry, 'runtimeArguments'), ...entriesOf(entry, 'packageArguments')]
    .filter((input) => memberOf(input, 'isRepeated') === true)
    .map((input) => textOf(input, 'name') ?? textOf(input, 'valueHint') ?? textOf(input, 'value') ?? '')
    .map((name) => `\`${onOneLine(name)}\` may be repeated: add more to \`args\``);
