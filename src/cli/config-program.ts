import { type Command, Option } from 'commander';
import type { Bind } from './context.ts';
import { withAdminOptions } from './proxy-program.ts';

/** What `-f` takes, for commands that find the file themselves (`config-file.ts`). */
export const FILE_OPTION = 'configuration file, or - for standard input (default: gateway.yaml)';

/** The commands on configuration files; returns the group. */
export function configCommands(program: Command, run: Bind): Command {
  const config = program.command('config').description('check and describe configuration files');
  config
    .command('validate')
    .argument('[files...]', 'configuration files, or - for standard input')
    .description('check configuration files and report every problem with its position')
    .option('-f, --file <path>', FILE_OPTION)
    .addOption(
      new Option('-o, --output <format>', 'format of the report')
        .choices(['text', 'concise', 'json', 'github', 'sarif'])
        .default('text'),
    )
    .option('--strict', 'treat warnings as errors')
    .addHelpText(
      'after',
      '\nOne run reports the mistakes of all parts of a file: a missing environment variable or an invalid part does not prevent checks of the rest, and problems that are only consequences of it are omitted.\n\nWith --strict, warnings cause exit code 1 too, and are errors in -o github. In other formats they remain warnings: `valid` of -o json means that there are no errors, and `warningCount` is the number of warnings.\n\nExit code 0: no errors. 1: errors. 2: a file could not be read; the others are still checked.\n\nExamples:\n  agctl config validate -f gateway.yaml\n  agctl config validate -o github *.yaml\n',
    )
    .action(run(() => import('./commands/config-validate.ts')));
  config
    .command('convert')
    .argument('<file>', 'configuration file, or - for standard input')
    .description('rewrite former keys of a configuration file in their current form')
    .addHelpText(
      'after',
      '\nPrints the result on standard output, and what was changed on standard error. Comments are kept. `binds` become `gateways` and top-level `routes`; `llm.port` becomes a gateway; `config.logging.fields`, `config.logging.filter` and `config.tracing` move to `frontendPolicies`.\n\nExit code 0: the result is valid. 1: it still has mistakes that were in the file.\n\nExample:\n  agctl config convert old.yaml > gateway.yaml\n',
    )
    .action(run(() => import('./commands/config-convert.ts')));
  config
    .command('schema')
    .description('print the JSON Schema of configuration files, for editors')
    .action(run(() => import('./commands/config-schema.ts')));
  editCommands(config, run);
  return config;
}

function editCommands(config: Command, run: Bind): void {
  config
    .command('fmt')
    .argument('[files...]', 'configuration files, or - for standard input')
    .description('format configuration files; comments, quotes and the order of keys are kept')
    .option('-f, --file <path>', FILE_OPTION)
    .option('--check', 'change nothing, and list the files that are not formatted')
    .addHelpText(
      'after',
      '\nExit code 0: formatted. 1: with --check, a file is not formatted; or a file is not valid YAML.\n\nExamples:\n  agctl config fmt\n  agctl config fmt --check *.yaml\n',
    )
    .action(run(() => import('./commands/config-fmt.ts')));
  withAdminOptions(
    config
      .command('diff')
      .argument('<file>', 'configuration file, or - for standard input')
      .argument('[other]', 'another file, or `running` for a running gateway (default: running)')
      .description('show what differs between two configurations, without their secrets')
      .addOption(
        new Option('-o, --output <format>', 'format of the output').choices(['text', 'json']).default('text'),
      ),
  )
    .addHelpText(
      'after',
      '\nOrder of keys, comments, notation and keys that are set to their defaults make no difference. Entries of lists are compared by their names. Against a running gateway, the file is the newer one: what a reload would change.\n\nExit code 0: no difference. 1: differences.\n\nExamples:\n  agctl config diff gateway.yaml running\n  agctl config diff old.yaml new.yaml\n',
    )
    .action(run(() => import('./commands/config-diff.ts')));
  config
    .command('explain')
    .argument('<name>', 'code such as AGW0101, status or text of a request error, or key such as mcp.targets')
    .description('explain a diagnostic code, a request error, or a key of a configuration')
    .addHelpText(
      'after',
      '\nExamples:\n  agctl config explain AGW0302\n  agctl config explain mcp.targets\n  agctl config explain localRateLimit\n',
    )
    .action(run(() => import('./commands/config-explain.ts')));
}
