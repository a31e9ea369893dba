import { CelEvaluationError } from '../errors.ts';
import { HeadersView } from '../headers-view.ts';
import { charge, chargeRead, chargeText } from '../limits.ts';
import type { Value } from '../values.ts';
import { asString, type FunctionDefinition, isString, method } from './define.ts';

const isHeaders = (value: Value): value is HeadersView => value instanceof HeadersView;

function cookie(headers: HeadersView, name: Value | undefined): string {
  const value = headers.cookie(asString(name));
  if (value === undefined) throw new CelEvaluationError('no_such_key', 'the request has no such cookie');
  return value;
}

/** A URI reference split at its query: what is before `?`, the query without it, and the fragment with its `#`. */
interface SplitUri {
  readonly before: string;
  readonly query: string | undefined;
  readonly fragment: string;
}

function splitUri(uri: string): SplitUri {
  chargeRead(uri.length);
  const hash = uri.indexOf('#');
  const fragment = hash < 0 ? '' : uri.slice(hash);
  const rest = hash < 0 ? uri : uri.slice(0, hash);
  const mark = rest.indexOf('?');
  return {
    before: mark < 0 ? rest : rest.slice(0, mark),
    query: mark < 0 ? undefined : rest.slice(mark + 1),
    fragment,
  };
}

/** Parameters are kept as written, so that parameters that the expression does not change reach the upstream unchanged. */
function parameters(query: string | undefined): string[] {
  if (query === undefined || query === '') return [];
  const all = query.split('&');
  charge(all.length * 2);
  return all;
}

function decoded(parameter: string): readonly [string, string] {
  // The `&` keeps a parameter that starts with `?` as it is.
  return new URLSearchParams(`&${parameter}`).entries().next().value ?? ['', ''];
}

function encoded(name: string, value: string): string {
  chargeText((name.length + value.length) * 3);
  return new URLSearchParams([[name, value]]).toString();
}

function query(uri: string, name: Value | undefined): Value {
  const wanted = asString(name);
  const values = parameters(splitUri(uri).query)
    .map(decoded)
    .filter(([key]) => key === wanted);
  if (values.length === 0) throw new CelEvaluationError('no_such_key', 'the URI has no such query parameter');
  return values.map(([, value]) => value);
}

function addQuery(uri: string, name: Value | undefined, value: Value | undefined): string {
  const { before, query: present, fragment } = splitUri(uri);
  chargeText(uri.length);
  return `${before}?${[...parameters(present), encoded(asString(name), asString(value))].join('&')}${fragment}`;
}

/** Replaces all parameters of that name by one in the place of the first, or adds it. */
function setQuery(uri: string, name: Value | undefined, value: Value | undefined): string {
  const { before, query: present, fragment } = splitUri(uri);
  chargeText(uri.length);
  const wanted = asString(name);
  const all = parameters(present);
  const at = all.findIndex((parameter) => decoded(parameter)[0] === wanted);
  const kept = all.filter((parameter) => decoded(parameter)[0] !== wanted);
  kept.splice(at < 0 ? kept.length : at, 0, encoded(wanted, asString(value)));
  return `${before}?${kept.join('&')}${fragment}`;
}

/** Methods of `request.headers` and the like, and of `request.uri` and `request.pathAndQuery`. */
export const http: readonly FunctionDefinition[] = [
  method(isHeaders, 'redacted', 0, (headers) => headers.redacted()),
  method(isHeaders, 'join', 0, (headers) => headers.as('join')),
  method(isHeaders, 'raw', 0, (headers) => headers.as('raw')),
  method(isHeaders, 'split', 0, (headers) => headers.as('split')),
  method(isHeaders, 'cookie', 1, cookie),
  method(isString, 'query', 1, query),
  method(isString, 'addQuery', 2, addQuery),
  method(isString, 'setQuery', 2, setQuery),
];
