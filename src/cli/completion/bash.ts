import type { CommandWords, Value } from './command-words.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A bash function that reads its words from two `case` tables: what follows a command, and what follows an option. */
export function bashCompletion(commands: readonly CommandWords[]): string {
  const steps = commands.flatMap(({ path, subcommands }) =>
    subcommands.map(
      ({ names, path: child }) =>
        `      ${names.map((name) => quoted(`${path}:${name}`)).join('|')}) path=${quoted(child)} ;;`,
    ),
  );
  const values = commands.flatMap(({ path, options }) =>
    options.flatMap(({ flags, value }) =>
      value === undefined
        ? []
        : [`    ${flags.map((flag) => quoted(`${path}:${flag}`)).join('|')}) ${reply(value)}; return ;;`],
    ),
  );
  const words = commands.map(({ path, subcommands, options, operand }) => {
    const flags = options.flatMap((each) => each.flags).join(' ');
    const names = subcommands.map((each) => each.names[0]).join(' ');
    return `    ${quoted(path)}) flags=${quoted(flags)}; names=${quoted(names)}; ${operand === undefined ? 'operand=:' : `operand=${quoted(reply(operand))}`} ;;`;
  });
  return `# bash completion of agctl. In ~/.bashrc: source <(agctl completion bash)
_agctl() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path='' flags names operand i
  COMP_REPLY_IGNORED=
  COMPREPLY=()
  # "--option=value" is three words to bash.
  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path:\${COMP_WORDS[i]}" in
${steps.join('\n')}
    esac
  done
  case "$path:$prev" in
${values.join('\n')}
  esac
  case "$path" in
${words.join('\n')}
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif [[ -n $names ]]; then
    COMPREPLY=($(compgen -W "$names" -- "$cur"))
  else
    eval "$operand"
  fi
}
complete -F _agctl agctl
`.replace('  COMP_REPLY_IGNORED=\n', '');
}

/** The command that completes a value. */
function reply(value: Value): string {
  if (value === 'text') return ':';
  if (value === 'file') return `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur"))`;
  if (value === 'folder') return `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur"))`;
  return `COMPREPLY=($(compgen -W "${value.join(' ')}" -- "$cur"))`;
}
