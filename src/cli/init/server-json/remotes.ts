import { stringIn } from '../../../core/foreign.ts';
import { NotImported } from '../imported.ts';
import { UNKNOWN_VALUE } from '../variables.ts';
import { type Entry, entriesOf, flagOf, onOneLine, textOf } from './fields.ts';
import type { Inputs } from './inputs.ts';

/** Headers that the gateway sets itself. */
const OWN_HEADERS = /^(?:accept|content-type|user-agent|mcp-.*)$/i;
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]{1,128}$/;

/** Whether a remote has the older HTTP+SSE transport. */
export const isSse = (entry: Entry): boolean => transportOf(entry) === 'sse';

const transportOf = (entry: Entry): string =>
  stringIn(entry['type']) ?? stringIn(entry['transport_type']) ?? '';

/** What a remote is, for people. */
export const remoteLabel = (entry: Entry): string => onOneLine(stringIn(entry['url']) ?? '?');

/**
 * The `mcp` or `sse` target of a remote.
 *
 * @throws NotImported if the gateway cannot reach it
 */
export function remoteTarget(entry: Entry, owner: string, inputs: Inputs): Entry {
  const type = transportOf(entry);
  if (!/^(?:streamable(?:-http)?|http|sse)$/.test(type))
    throw new NotImported(`its transport is \`${onOneLine(type)}\`; expected streamable-http or sse`);
  const host = hostOf(entry, owner, inputs);
  const key = bearerToken(entry, owner, inputs);
  return {
    [type === 'sse' ? 'sse' : 'mcp']: { host },
    ...(key !== undefined && { policies: { backendAuth: { key } } }),
  };
}

function hostOf(entry: Entry, owner: string, inputs: Inputs): string {
  const url = textOf(entry, 'url') ?? '';
  const filled = url.replaceAll(
    /\$?\{[^{}]*\}/g,
    (_, index: number) => placeholderAt(url, index) ?? UNKNOWN_VALUE,
  );
  const parsed = URL.canParse(filled) ? new URL(filled) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || /\s/.test(url))
    throw new NotImported(`\`${onOneLine(url)}\` is not an http or https URL`);
  if (parsed.username !== '' || parsed.password !== '')
    throw new NotImported('its URL has a user and a password, which targets cannot send');
  return inputs.template(url, entry, true, (id, index) => ({
    name: `${owner}_${id}`,
    place: 'url',
    placeholder: placeholderAt(url, index),
  }));
}

/** What stands for a part of a URL until it is filled in, where the usual text would not be valid. */
function placeholderAt(url: string, index: number): string | undefined {
  if (index === 0) return `https://${UNKNOWN_VALUE}.invalid`;
  return /^[a-z]+:\/\/[^/]*:$/i.test(url.slice(0, index)) ? '443' : undefined;
}

/** The bearer token that a remote asks for: the only header that targets can have. */
function bearerToken(entry: Entry, owner: string, inputs: Inputs): string | undefined {
  let key: string | undefined;
  const others: string[] = [];
  for (const input of entriesOf(entry, 'headers')) {
    const name = textOf(input, 'name') ?? '';
    if (!HEADER_NAME.test(name)) throw new NotImported(`\`${onOneLine(name)}\` is not the name of a header`);
    if (OWN_HEADERS.test(name)) continue;
    // Authors mark a key as secret, and rarely as required.
    const isRequired = flagOf(input, 'isRequired') ?? flagOf(input, 'isSecret') ?? false;
    const isWhole = textOf(input, 'value') === undefined;
    if (!/^authorization$/i.test(name)) {
      if (isRequired || !isWhole) others.push(name);
      else inputs.unset.push(name);
      continue;
    }
    const value = inputs.valueOf(
      { ...input, isRequired },
      {
        ...{ name: `${owner}_token`, place: 'headers' },
        ...(isWhole && { form: 'the token alone, without `Bearer`' }),
      },
    );
    if (value === undefined) inputs.unset.push(name);
    if (value === undefined) continue;
    const [, token] = /^Bearer\s+(\S+)$/i.exec(value) ?? [];
    key = token ?? (isWhole ? value : undefined);
    if (key === undefined) throw new NotImported('its `Authorization` header is no bearer token');
  }
  if (others.length > 0)
    throw new NotImported(
      `it needs the header ${others.map((name) => `\`${name}\``).join(', ')}; targets can have \`Authorization: Bearer\` alone`,
    );
  return key;
}
