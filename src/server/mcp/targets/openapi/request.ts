import { members, type Span, valueAt } from '../../../kernel/json/json-text.ts';
import { canonicalPattern } from '../../../kernel/request/request-target.ts';
import { type FormFields, formBody } from './form.ts';
import type { Operation } from './operations.ts';
import {
  ArgumentError,
  cookieValue,
  type Group,
  type Parameter,
  pathValue,
  queryPairs,
  simpleValue,
} from './parameters.ts';

/** The request of one tool call. */
export interface ApiRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Headers that the arguments set, as alternating names and values. */
  readonly headers: readonly string[];
  readonly body: string | undefined;
}

/** Arguments as JSON texts: those of each group by name, and the body. */
type Arguments = Record<Group, ReadonlyMap<string, string>> & { readonly body: string | undefined };

/**
 * Creates the request of a tool call from the text of its `tools/call` message. A JSON body is the text of the argument
 * `body` unchanged. Throws `ArgumentError` for arguments that cannot be sent.
 */
export function requestOf(operation: Operation, message: string): ApiRequest {
  const { method, parameters, bodyType, needsBody } = operation;
  const given = readArguments(operation, message);
  for (const { group, name, isRequired } of parameters)
    if (isRequired && !given[group].has(name)) throw new ArgumentError(`${group}.${name} is required`);
  if (needsBody && given.body === undefined) throw new ArgumentError('body is required');
  const query = queryOf(parameters, given.query);
  const headers = parameters.flatMap((parameter) => {
    const text = parameter.group === 'header' ? given.header.get(parameter.name) : undefined;
    return text === undefined ? [] : [parameter.name, simpleValue(parameter, text)];
  });
  const cookie = cookieOf(parameters, given.cookie);
  if (cookie !== '') headers.push('cookie', cookie);
  const isSent = given.body !== undefined && bodyType !== undefined;
  return {
    method,
    path: pathOf(operation, given.path) + (query === '' ? '' : `?${query}`),
    headers: isSent ? [...headers, 'content-type', bodyType] : headers,
    body: isSent ? bodyOf(given.body, operation.form) : undefined,
  };
}

function bodyOf(text: string, form: FormFields | undefined): string {
  return form === undefined ? text : formBody(membersAt(text, { start: 0, end: text.length }, 'body'), form);
}

function cookieOf(parameters: readonly Parameter[], given: ReadonlyMap<string, string>): string {
  return parameters
    .flatMap((parameter) => {
      const text = parameter.group === 'cookie' ? given.get(parameter.name) : undefined;
      return text === undefined ? [] : [`${parameter.name}=${cookieValue(parameter, text)}`];
    })
    .join('; ');
}

function readArguments({ parameters, bodyType }: Operation, message: string): Arguments {
  const all = new Map(membersAt(message, valueAt(message, ['params', 'arguments']), 'the arguments'));
  const take = (group: Group): ReadonlyMap<string, string> => {
    const declared = parameters.filter((parameter) => parameter.group === group).map(({ name }) => name);
    const given = readGroup(group, all.get(group), declared);
    all.delete(group);
    return given;
  };
  const groups = { path: take('path'), query: take('query'), header: take('header'), cookie: take('cookie') };
  const body = all.get('body');
  all.delete('body');
  const [unknown] = all.keys();
  if (unknown !== undefined || (body !== undefined && bodyType === undefined))
    throw new ArgumentError(`this tool has no argument ${JSON.stringify(unknown ?? 'body')}`);
  return { ...groups, body };
}

/** The arguments of one group without those that are null, which means that they are absent. */
function readGroup(group: Group, text: string | undefined, declared: readonly string[]): Map<string, string> {
  const given = new Map<string, string>();
  if (text === undefined || text === 'null') return given;
  for (const [name, value] of membersAt(text, { start: 0, end: text.length }, group)) {
    if (!declared.includes(name))
      throw new ArgumentError(
        `this tool has no argument ${JSON.stringify(`${group}.${name}`)}; in ${group} it has: ${declared.join(', ') || 'none'}`,
      );
    if (value !== 'null') given.set(name, value);
  }
  return given;
}

function membersAt(text: string, span: Span | undefined, place: string): [name: string, value: string][] {
  if (span === undefined) return [];
  if (text[span.start] !== '{') throw new ArgumentError(`${place} must be an object`);
  return members(text, span.start).map(([name, { start, end }]) => [name, text.slice(start, end)]);
}

function queryOf(parameters: readonly Parameter[], given: ReadonlyMap<string, string>): string {
  const own = parameters.filter(({ group }) => group === 'query');
  const names = new Set(own.map(({ name }) => name));
  return own
    .flatMap((parameter) => {
      const text = given.get(parameter.name);
      return text === undefined ? [] : queryPairs(parameter, text, names);
    })
    .join('&');
}

function pathOf({ path, parameters }: Operation, given: ReadonlyMap<string, string>): string {
  const names = new Set(parameters.filter(({ group }) => group === 'path').map(({ name }) => name));
  const filled = path.map((part, index) => {
    if (index % 2 === 0) return part;
    const parameter = parameters.find(({ group, name }) => group === 'path' && name === part);
    const value = parameter === undefined ? '' : pathValue(parameter, given.get(part) ?? '""', names);
    // An empty segment often names another resource, such as the whole collection.
    if (value === '') throw new ArgumentError(`path.${part} must not be empty`);
    return value;
  });
  const whole = filled.join('');
  // Encoded slashes count, because some servers decode them first: `a%2F..%2Fb`.
  if (canonicalPattern(whole, 'keep') === undefined)
    throw new ArgumentError(
      'path parameters must not contain control characters or form the path segments `.` and `..`',
    );
  return whole;
}
