import { messageOf } from '../../../../core/errors.ts';
import { decodedUri } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import { YAML_LIMITS } from '../../../../core/yaml/limits.ts';
import { LineIndex } from '../../../../core/yaml/lines.ts';
import { parseYamlSyntax } from '../../../../core/yaml/syntax.ts';
import { parseJson } from '../../../kernel/files/json-file.ts';
import { exceedsStructure } from '../../../kernel/json/json-text.ts';

export type Json = Readonly<Record<string, unknown>>;

/** What is wrong with a document and where. Never quotes its text, which may come from any file of this machine. */
export class DocumentError extends Error {}

/** A parsed OpenAPI document. */
export interface OpenApiDocument {
  readonly root: Json;
  /** Schemas follow OpenAPI 3.0, not JSON Schema: `nullable`, boolean `exclusiveMinimum`. */
  readonly is30: boolean;
}

/** Parses a document written in JSON or YAML. Throws `DocumentError` for anything but an OpenAPI 3 document. */
export function parseDocument(text: string): OpenApiDocument {
  const json = /^\uFEFF?\s*\{/.test(text) ? text.replace(/^\uFEFF/, '') : jsonOfYaml(text);
  if (exceedsStructure(json, LIMITS.jsonDepth, Number.POSITIVE_INFINITY))
    throw new DocumentError(`the document nests deeper than ${LIMITS.jsonDepth}`);
  const root = parsedJson(json);
  if (!isObject(root))
    throw new DocumentError('expected an OpenAPI document (to name a file, write `schema: { file: … }`)');
  if (Object.hasOwn(root, 'swagger'))
    throw new DocumentError(
      'the document is Swagger 2.0: convert it to OpenAPI 3, for example with swagger2openapi or converter.swagger.io',
    );
  const version = typeof root['openapi'] === 'string' ? root['openapi'] : undefined;
  // 3.2 adds to 3.1 nothing that changes the meaning of what is read here.
  if (version === undefined || !/^3\.[012](?:\.|$)/.test(version))
    throw new DocumentError('expected `openapi: 3.0.x` or `openapi: 3.1.x` at the top of the document');
  return { root, is30: version.startsWith('3.0') };
}

/** Removes everything that YAML has and JSON has not: aliases, which may be cycles, and tags such as dates. */
function jsonOfYaml(text: string): string {
  const parsed = parseYamlSyntax(text, YAML_LIMITS.foreignLexemes);
  if ('problem' in parsed) {
    const { code, message, start } = parsed.problem;
    const { line, column } = new LineIndex(text).position(start);
    // Other messages may quote the text.
    const isLimit = code === 'AGW0003' || code === 'AGW0005';
    throw new DocumentError(
      isLimit
        ? `${message} (line ${line}): convert the document to JSON, for which the limits are higher`
        : `the document is neither JSON nor YAML (line ${line}, column ${column})`,
    );
  }
  try {
    return JSON.stringify(parsed.document?.toJS({ maxAliasCount: 100 }) ?? null);
  } catch {
    throw new DocumentError('the aliases of the YAML document are cyclic or expand to too many values');
  }
}

function parsedJson(text: string): unknown {
  try {
    return parseJson(text, 'the document');
  } catch (error) {
    throw new DocumentError(messageOf(error));
  }
}

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Own member of an object: `constructor` of a parsed text is not one. */
export function member(object: Json, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** References to follow before the target is a value; more are taken for a cycle. */
export const REFERENCE_HOPS = 32;

/**
 * Follows `$ref` until there is a value that is not a reference. Throws `DocumentError` for a reference to another
 * document, which is never read: a document must not decide what the gateway opens.
 */
export function dereference({ root }: OpenApiDocument, node: unknown, at: string): unknown {
  let value = node;
  for (let hops = 0; ; hops += 1) {
    const reference = isObject(value) ? member(value, '$ref') : undefined;
    if (typeof reference !== 'string') return value;
    if (hops === REFERENCE_HOPS) throw new DocumentError(`${at}: its references form a cycle`);
    value = referenced(root, reference, at);
  }
}

/** The value of a local reference, such as `#/components/schemas/Pet` (RFC 6901 §6). Throws `DocumentError`. */
export function referenced(root: Json, reference: string, at: string): unknown {
  if (!reference.startsWith('#'))
    throw new DocumentError(
      `${at}: the reference ${shown(reference)} leaves the document, and such references are not followed: bundle the document into one file, for example with \`redocly bundle\``,
    );
  let value: unknown = reference.startsWith('#/') ? root : undefined;
  for (const part of reference.slice(2).split('/')) {
    const key = decodedUri(part).replaceAll('~1', '/').replaceAll('~0', '~');
    value = Array.isArray(value) ? value[Number(key)] : isObject(value) ? member(value, key) : undefined;
  }
  if (value === undefined)
    throw new DocumentError(`${at}: the reference ${shown(reference)} leads to nothing`);
  return value;
}

/** A name of the document for messages: short, and without control characters. */
export const shown = (name: string): string =>
  JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
