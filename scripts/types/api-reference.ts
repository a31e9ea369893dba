// docs/library-api.md: what a program can import, from the docstrings of src/library.
import { readFileSync } from 'node:fs';
import { isolatedDeclarationSync } from 'rolldown/experimental';
import { PACKAGE_NAME } from '../../src/core/version.ts';

/** In the order of the page. The types of configurations are explained by their schema. */
const FILES = {
  [PACKAGE_NAME]: ['create-gateway.ts', 'api.ts', 'request-facts.ts', 'config-error.ts'],
  [`${PACKAGE_NAME}/policy`]: ['policy.ts', '../server/policies/modules/api.ts'],
  [`${PACKAGE_NAME}/testing`]: [
    'testing/test-gateway.ts',
    'testing/stub-model.ts',
    'testing/chat-answers.ts',
    'testing/stub-mcp-server.ts',
    'testing/matchers.ts',
  ],
};

/** An exported declaration, with the comment before it. */
const DECLARATION =
  /(?:^\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?^export (?:declare )?((?:interface|class|function|type|const) (\w+)[\s\S]*?)(?=\n(?:\/\*\*|export |declare |interface |type |const |$(?![\s\S])))/gm;

/** Text of docs/library-api.md. */
export function apiReference(): string {
  const parts = Object.entries(FILES).map(
    ([name, files]) => `## ${name}\n\n${files.map(sectionsOf).join('\n\n')}`,
  );
  return `# The library: reference

[In your own program](library.md) explains how it is used, and [tests](library-testing.md) have a part of their own. The members of
\`GatewayConfig\` are those of a configuration file: \`agctl config schema\`, and \`man agctl-config\`.

${parts.join('\n\n')}
`;
}

function sectionsOf(file: string): string {
  const source = readFileSync(new URL(`../../src/library/${file}`, import.meta.url), 'utf8');
  // The set of names is public: src/library/index.ts, policy.ts and testing/index.ts.
  const isPublic = (name: string): boolean => PUBLIC.has(name);
  const { code } = isolatedDeclarationSync(file, source, {});
  return [...code.matchAll(DECLARATION)]
    .filter(([, , , name = '']) => isPublic(name))
    .map(([, comment = '', text = '', name]) => {
      const declaration = text
        .trim()
        .replace(/^const /, 'declare const ')
        .replaceAll(/^\t\*/gm, '   *')
        .replaceAll('\t', '  ');
      return `### \`${name}\`\n\n${prose(comment)}\n\n\`\`\`ts\n${declaration}\n\`\`\``;
    })
    .join('\n\n');
}

const PUBLIC = new Set(
  ['index.ts', 'policy.ts', 'testing/index.ts'].flatMap((file) => {
    const text = readFileSync(new URL(`../../src/library/${file}`, import.meta.url), 'utf8');
    return [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(
      ([, names = '']) => names.match(/\w+/g) ?? [],
    );
  }),
);

/** The text of a docstring, with its tags as list items. */
function prose(comment: string): string {
  return comment
    .replace(/^ *\* ?/gm, '')
    .trim()
    .replaceAll(/^@param (\w+)/gm, '* `$1`:')
    .replaceAll(/^@throws /gm, '* Throws ');
}
