import { isRecord, textIn } from '../../../core/foreign.ts';
import type { Lost } from './lost.ts';
import { variableIn } from './references.ts';

type Entry = Readonly<Record<string, unknown>>;

/** LiteLLM writes the credential of an MCP server apart from its headers. */
export function withTokens(servers: Entry, lost: Lost): Entry {
  return Object.fromEntries(
    Object.entries(servers).map(([name, each]) => {
      if (!isRecord(each)) return [name, each];
      const { auth_type: type, auth_value: value, authentication_token: token, ...rest } = each;
      const given = textIn([value, token].find((one) => typeof one === 'string'));
      const header = headerOf(textIn(type), given);
      if (header !== undefined) return [name, { ...rest, headers: { ...headersIn(rest), ...header } }];
      if (type !== undefined && type !== null && type !== 'none')
        lost.add('auth_type', `a target has a bearer token or nothing, not \`${textIn(type)}\``, {
          owner: name,
        });
      return [name, rest];
    }),
  );
}

const headersIn = ({ headers }: Entry): Entry => (isRecord(headers) ? headers : {});

function headerOf(type: string, given: string): Entry | undefined {
  if (given === '') return undefined;
  const variable = variableIn(given);
  const written = variable === undefined ? given : `\${${variable}}`;
  if (type === 'bearer_token') return { Authorization: `Bearer ${written}` };
  if (type === 'authorization') return { Authorization: written };
  return undefined;
}
