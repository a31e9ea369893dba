import { stringIn } from '../../../core/foreign.ts';
import { NotImported } from '../imported.ts';
import { headerPolicies, isOwnHeader, type TargetHeader } from '../target-headers.ts';
import { UNKNOWN_VALUE } from '../variables.ts';
import { type Entry, entriesOf, flagOf, onOneLine, textOf } from './fields.ts';
import type { Inputs } from './inputs.ts';
import { plainRisk } from './risks.ts';
import type { Said } from './said.ts';

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
export function remoteTarget(entry: Entry, owner: string, inputs: Inputs, { risks }: Said): Entry {
  const type = transportOf(entry);
  if (!/^(?:streamable(?:-http)?|http|sse)$/.test(type))
    throw new NotImported(`its transport is \`${onOneLine(type)}\`; expected streamable-http or sse`);
  const host = hostOf(entry, owner, inputs);
  const plain = plainRisk(inputs.resolved(host));
  if (plain !== undefined) risks.push(plain);
  const policies = headerPolicies(headersOf(entry, owner, inputs));
  return {
    [type === 'sse' ? 'sse' : 'mcp']: { host },
    ...(policies !== undefined && { policies }),
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

/** The headers that a remote asks for. */
function headersOf(entry: Entry, owner: string, inputs: Inputs): readonly TargetHeader[] {
  return entriesOf(entry, 'headers').flatMap((input, index): TargetHeader[] => {
    const name = textOf(input, 'name') ?? '';
    if (!HEADER_NAME.test(name))
      throw new NotImported(`\`headers[${index}].name\`: \`${onOneLine(name)}\` is not the name of a header`);
    if (isOwnHeader(name)) return [];
    // Authors mark a key as secret, and rarely as required.
    const isRequired = flagOf(input, 'isRequired') ?? flagOf(input, 'isSecret') ?? false;
    const isAuthorization = /^authorization$/i.test(name);
    const isWhole = textOf(input, 'value') === undefined;
    const value = inputs.valueOf(
      { ...input, isRequired },
      {
        ...{ name: `${owner}_${isAuthorization ? 'token' : name}`, place: 'headers' },
        ...(isAuthorization && isWhole && { form: 'the token alone, without `Bearer`' }),
      },
    );
    if (value === undefined) inputs.unset.push(name);
    if (value === undefined) return [];
    return [{ name, value: isAuthorization && isWhole ? `Bearer ${value}` : value }];
  });
}
