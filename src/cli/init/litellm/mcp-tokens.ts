import { isRecord, textIn } from '../../../core/foreign.ts';
import type { Lost } from './lost.ts';
import { variableIn } from './references.ts';

type Entry = Readonly<Record<string, unknown>>;

/** LiteLLM writes the credential of an MCP server apart from its headers. */
export function withTokens(servers: Entry, lost: Lost): Entry {
  return Object.fromEntries(
    Object.entries(servers).map(([name, each]) => {
      if (!isRecord(each)) return [name, each];
      const { auth_type: type, auth_value: value, authentication_token: token, ...others } = each;
      const rest = { ...withoutRights(others), ...toolsOf(name, others) };
      for (const key of Object.keys(others).filter(
        (member) => RIGHTS.test(member) && !isRead(member, others),
      ))
        lost.add(key, 'who may use a target, and how, is set with `mcp.policies.mcpAuthorization`', {
          owner: name,
          isWarning: true,
        });
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

/** Members that say who may use a server, and which of its tools. */
const RIGHTS = /^(?:dis)?allowed_|access_groups|_permissions?$/;

const TOOLS: Readonly<Record<string, string>> = {
  allowed_tools: 'includeTools',
  disallowed_tools: 'excludeTools',
};

/** Whether a member is one of the lists of tools that are kept; an empty list allows every tool. */
const isRead = (key: string, server: Entry): boolean =>
  Object.hasOwn(TOOLS, key) && (server[key] === null || Array.isArray(server[key]));

const withoutPrefix = (text: string, prefix: string): string =>
  text.startsWith(prefix) ? text.slice(prefix.length) : text;

const withoutRights = (server: Entry): Entry =>
  Object.fromEntries(Object.entries(server).filter(([key]) => !RIGHTS.test(key)));

/** The lists of tools, by the names that clients' settings have. LiteLLM also accepts names with that of the server before them. */
function toolsOf(name: string, server: Entry): Entry {
  return Object.fromEntries(
    Object.entries(TOOLS).flatMap(([key, as]) => {
      const tools = server[key];
      if (!Array.isArray(tools) || tools.length === 0) return [];
      return [[as, tools.map((tool) => withoutPrefix(textIn(tool), `${name}-`))]];
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
