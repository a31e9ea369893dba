// docs/library-api.md: what a program can import, from the docstrings of src/library.
import { readFileSync } from 'node:fs';
import { isolatedDeclarationSync } from 'rolldown/experimental';
import { PACKAGE_NAME } from '../../src/core/version.ts';

/** In the order of the page. The types of configurations are explained by their schema. */
const FILES = ['create-gateway.ts', 'api.ts', 'request-facts.ts', 'config-error.ts'];

/** An exported declaration with the comment before it. */
const DECLARATION =
  /(?:^\/\*\*\n?([\s\S]*?)\*\/\n)?^export (?:declare )?((?:interface|class|function) (\w+)[\s\S]*?^\}|function (\w+)[^\n]*)$/gm;

/** Text of docs/library-api.md. */
export function apiReference(): string {
  const sections = FILES.flatMap((name) => {
    const { code } = isolatedDeclarationSync(
      name,
      readFileSync(new URL(`../../src/library/${name}`, import.meta.url), 'utf8'),
      {},
    );
    return [...code.matchAll(DECLARATION)].map(([, comment = '', text = '', block, line]) =>
      [
        `## \`${block ?? line}\``,
        prose(comment),
        '```ts',
        text.replaceAll(/^\t\*/gm, '   *').replaceAll('\t', '  '),
        '```',
      ].join('\n\n'),
    );
  });
  return `# The library: reference

What \`${PACKAGE_NAME}\` exports. [In your own program](library.md) explains how it is used. The members of \`GatewayConfig\` are those of a
configuration file: \`agctl config schema\`, and \`man agctl-config\`.

${sections
  .join('\n\n')
  .replaceAll('```ts\n\n', '```ts\n')
  .replaceAll('\n\n```\n', '\n```\n')
  .replace(/\n\n```$/, '\n```')}
`;
}

/** The text of a docstring, with its tags as list items. */
function prose(comment: string): string {
  return comment
    .replace(/^ *\* ?/gm, '')
    .trim()
    .replaceAll(/^@param (\w+)/gm, '* `$1`:')
    .replaceAll(/^@throws /gm, '* Throws ');
}
