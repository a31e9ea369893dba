import type { CommandWords, Value } from './command-words.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
/** An entry of `_describe`, in which a colon ends the name. */
const described = (name: string, text: string): string => quoted(`${name.replaceAll(':', '\\:')}:${text}`);

/** A zsh function with the same tables as that of bash; `_describe` shows the descriptions. */
export function zshCompletion(commands: readonly CommandWords[]): string {
  const steps = commands.flatMap(({ path, subcommands }) =>
    subcommands.map(
      ({ names, path: child }) =>
        `      ${names.map((name) => `(${quoted(`${path}:${name}`)})`).join('|')}) at=${quoted(child)} ;;`,
    ),
  );
  const values = commands.flatMap(({ path, options }) =>
    options.flatMap(({ flags, value }) =>
      value === undefined
        ? []
        : [
            `    ${flags.map((flag) => `(${quoted(`${path}:${flag}`)})`).join('|')}) ${reply(value)}; return ;;`,
          ],
    ),
  );
  const words = commands.map(({ path, subcommands, options, operand }) => {
    const flags = options.flatMap((each) => each.flags.map((flag) => described(flag, each.description)));
    const names = subcommands.map((each) => described(each.names[0] ?? '', each.description));
    return `    (${quoted(path)}) flags=(${flags.join(' ')}); names=(${names.join(' ')}); operand=${quoted(operand === undefined ? ':' : reply(operand))} ;;`;
  });
  return `#compdef agctl
# zsh completion of agctl. In ~/.zshrc, after compinit: source <(agctl completion zsh)
_agctl() {
  local at='' operand word
  local -a flags names
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at:$word" in
${steps.map((step) => step.replace(/^( *)\(/, '$1(')).join('\n')}
    esac
  done
  case "$at:\${words[CURRENT-1]}" in
${values.join('\n')}
  esac
  case "$at" in
${words.join('\n')}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    _describe -o option flags
  elif (( \${#names} )); then
    _describe command names
  else
    eval "$operand"
  fi
}
if [[ \${funcstack[1]} == _agctl ]]; then _agctl "$@"; else compdef _agctl agctl; fi
`;
}

function reply(value: Value): string {
  if (value === 'text') return ':';
  if (value === 'file') return '_files';
  return value === 'folder' ? '_files -/' : `compadd -- ${value.join(' ')}`;
}
