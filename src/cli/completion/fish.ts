import type { CommandWords, OptionWords, Value } from './command-words.ts';

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** \`complete\` commands of fish, each with the command that it applies to as its condition. */
export function fishCompletion(commands: readonly CommandWords[]): string {
  const steps = commands.flatMap(({ path, subcommands }) =>
    subcommands.map(
      ({ names, path: child }) =>
        `            case ${names.map((name) => quoted(`${path}:${name}`)).join(' ')}\n                set path ${quoted(child)}`,
    ),
  );
  return `# fish completion of agctl. agctl completion fish > ~/.config/fish/completions/agctl.fish
function __agctl_at
    set -l path ''
    set -l words (commandline -opc)
    for word in $words[2..-1]
        switch "$path:$word"
${steps.join('\n')}
        end
    end
    test "$path" = "$argv[1]"
end
complete -c agctl -f
${commands.flatMap(linesOf).join('\n')}
`;
}

function linesOf({ path, subcommands, options, operand }: CommandWords): string[] {
  const start = `complete -c agctl -n ${quoted(`__agctl_at ${quoted(path)}`)}`;
  return [
    ...subcommands.map(
      ({ names, description }) => `${start} -a ${quoted(names[0] ?? '')} -d ${quoted(description)}`,
    ),
    ...options.map(
      (option) =>
        `${start} ${flagsOf(option)}${option.value === undefined ? '' : ` -r ${argument(option.value)}`} -d ${quoted(option.description)}`,
    ),
    ...(operand === undefined ? [] : [`${start} ${argument(operand)}`]),
  ];
}

const flagsOf = ({ flags }: OptionWords): string =>
  flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(' ');

function argument(value: Value): string {
  if (value === 'text') return '-f';
  if (value === 'file') return '-F';
  return value === 'folder' ? `-f -a '(__fish_complete_directories)'` : `-f -a ${quoted(value.join(' '))}`;
}
