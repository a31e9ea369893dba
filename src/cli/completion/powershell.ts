import type { CommandWords, Value } from './command-words.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** An argument completer with one table of all commands. Files are left to PowerShell, which completes them by itself. */
export function powershellCompletion(commands: readonly CommandWords[]): string {
  const entries = commands.map(({ path, subcommands, options, operand }) => {
    const names = subcommands.map(
      ({ names: [name = ''], description }) => `@(${quoted(name)}, ${quoted(description)})`,
    );
    const flags = options.flatMap((each) =>
      each.flags.map((flag) => `@(${quoted(flag)}, ${quoted(each.description)})`),
    );
    const values = options.flatMap(({ flags: all, value }) =>
      value === undefined ? [] : all.map((flag) => `${quoted(flag)} = ${list(value)}`),
    );
    const steps = subcommands.flatMap(({ names: all, path: child }) =>
      all.map((name) => `${quoted(name)} = ${quoted(child)}`),
    );
    return `  ${quoted(path)} = @{\n    Names = @(${names.join(', ')})\n    Flags = @(${flags.join(', ')})\n    Values = @{ ${values.join('; ')} }\n    Steps = @{ ${steps.join('; ')} }\n    Operands = ${operand === undefined ? '@()' : list(operand)}\n  }`;
  });
  return `# PowerShell completion of agctl. In $PROFILE: agctl completion powershell | Out-String | Invoke-Expression
$__agctl = @{
${entries.join('\n')}
}
Register-ArgumentCompleter -Native -CommandName agctl -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition -or $_.Extent.Text -ne $wordToComplete } | Select-Object -Skip 1 | ForEach-Object { $_.Extent.Text })
  $at = ''
  foreach ($word in $words) { if ($__agctl[$at].Steps.ContainsKey($word)) { $at = $__agctl[$at].Steps[$word] } }
  $command = $__agctl[$at]
  $previous = if ($words.Count -gt 0) { $words[-1] } else { '' }
  $found = if ($command.Values.ContainsKey($previous)) { @($command.Values[$previous] | ForEach-Object { , @($_, $_) }) }
    elseif ($wordToComplete.StartsWith('-')) { $command.Flags }
    elseif ($command.Names.Count -gt 0) { $command.Names }
    else { @($command.Operands | ForEach-Object { , @($_, $_) }) }
  $found | Where-Object { $_ -and $_[0].StartsWith($wordToComplete) } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
  }
}
`;
}

const list = (value: Value): string =>
  typeof value === 'string' ? '@()' : `@(${value.map(quoted).join(', ')})`;
