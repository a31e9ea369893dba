import { createHash } from 'node:crypto';
import { elementsOf, membersOf, shownValue } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import { isHeaderName, isSettableHeader } from '../../../kernel/request/header-list.ts';
import { canonicalPattern } from '../../../kernel/request/request-target.ts';
import {
  DocumentError,
  dereference,
  isObject,
  type Json,
  member,
  type OpenApiDocument,
  shown,
} from './document.ts';
import { FORM_TYPE, type FormFields, readFormFields } from './form.ts';
import { type Converted, type JsonSchema, SchemaConverter } from './input-schema.ts';
import { GROUPS, type Group, type Parameter, STYLES } from './parameters.ts';

/** An operation that is offered as a tool. */
export interface Operation {
  /** Name of the tool. */
  readonly name: string;
  /** The tool in `tools/list`, as JSON text. */
  readonly tool: string;
  readonly method: string;
  /** Base path of the server and path of the operation: literal text and names of path parameters, alternating. */
  readonly path: readonly string[];
  /** Without those of the header that the configuration sets. */
  readonly parameters: readonly Parameter[];
  /** Media type of the request body; undefined without a body. */
  readonly bodyType: string | undefined;
  /** Set if the body is a form. */
  readonly form: FormFields | undefined;
  readonly needsBody: boolean;
}

/** The operations of a document. */
export interface Operations {
  readonly tools: readonly Operation[];
  /** Operations that cannot be offered, each with the reason. */
  readonly omitted: readonly string[];
}

export interface OperationOptions {
  /** Replaces the base path of the document's servers. */
  readonly basePath: string | undefined;
  /** Names in lower case of headers that the configuration sets: callers cannot set them. */
  readonly ownHeaders: ReadonlySet<string>;
}

/** Without `trace`, whose answer would show the credentials of the request. */
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const;

/** Parameters with these names have no effect (OpenAPI 3.1 §4.8.12); cookies have a place of their own. */
const IGNORED_HEADERS = new Set(['accept', 'content-type', 'authorization', 'cookie']);

/** A reason why one operation cannot be offered. */
class Unsupported extends Error {}

/** Reads the operations of a document, in its order. Throws `DocumentError`. */
export function readOperations(document: OpenApiDocument, options: OperationOptions): Operations {
  const paths = dereference(document, member(document.root, 'paths') ?? {}, 'paths');
  if (!isObject(paths)) throw new DocumentError('paths: expected an object');
  const found = Object.entries(paths).flatMap(([path, item]) => operationsOf(document, path, item));
  const most = LIMITS.openApiPageTools * LIMITS.listPages;
  if (found.length > most)
    throw new DocumentError(
      `the document has ${found.length} operations; at most ${most} can be offered: split it`,
    );
  const reader = new OperationReader(document, options, found.length);
  const tools: Operation[] = [];
  const omitted: string[] = [];
  for (const each of found) {
    try {
      tools.push(reader.read(each));
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      omitted.push(`${each.at}: ${error.message}`);
    }
  }
  if (tools.length > 0) return { tools, omitted };
  throw new DocumentError(
    omitted[0] === undefined
      ? 'the document has no operations in `paths`'
      : `no operation of the document can be offered as a tool: ${omitted[0]}`,
  );
}

/** An operation in the document. */
interface FoundOperation {
  readonly method: string;
  readonly path: string;
  readonly pathItem: Json;
  readonly operation: Json;
  /** Method and path for messages. */
  readonly at: string;
}

function operationsOf(document: OpenApiDocument, path: string, item: unknown): FoundOperation[] {
  const pathItem = dereference(document, item, `paths.${shown(path)}`);
  // Other keys are extensions (`x-…`).
  if (!path.startsWith('/') || !isObject(pathItem)) return [];
  return METHODS.flatMap((method) => {
    const operation = member(pathItem, method);
    const at = `${method.toUpperCase()} ${shown(path)}`;
    return isObject(operation) ? [{ method, path, pathItem, operation, at }] : [];
  });
}

class OperationReader {
  readonly #document: OpenApiDocument;
  readonly #options: OperationOptions;
  readonly #names = new Set<string>();
  readonly #schemas: SchemaConverter;
  /** Characters that the schemas of one tool may have. */
  readonly #longest: number;

  constructor(document: OpenApiDocument, options: OperationOptions, operations: number) {
    this.#document = document;
    this.#options = options;
    const share = Math.floor(LIMITS.openApiToolsLength / Math.max(1, operations));
    this.#longest = Math.min(LIMITS.openApiToolLength, share);
    this.#schemas = new SchemaConverter(document);
  }

  read({ method, path, pathItem, operation, at }: FoundOperation): Operation {
    const template = this.#template(path, pathItem, operation);
    const groups = this.#parameters(pathItem, operation, template, at);
    const body = method === 'get' || method === 'head' ? undefined : this.#body(operation, at);
    const name = this.#name(method, path, operation);
    const inputSchema = this.#inputSchema(groups, body);
    const tool = JSON.stringify({ name, ...described(operation, method), inputSchema });
    if (tool.length > 4 * LIMITS.openApiToolLength) throw new Unsupported('its parameters are too large');
    return {
      name,
      tool,
      method: method.toUpperCase(),
      path: template,
      parameters: [...groups.values()].flatMap((all) => all.map(({ parameter }) => parameter)),
      bodyType: body?.type,
      form: body?.form,
      needsBody: body?.isRequired === true,
    };
  }

  /** `operationId` or `METHOD_path`, with the characters that providers of models accept; unique in the document. */
  #name(method: string, path: string, operation: Json): string {
    const longest = LIMITS.llmToolName;
    const id = operation['operationId'];
    const own = typeof id === 'string' ? toolName(id) : '';
    const name = own === '' ? toolName(method + path) : own;
    const isUsable = name.length <= longest && !this.#names.has(name);
    // Depends on the operation alone, so that other operations do not change it.
    const mark = createHash('sha256').update(`${method} ${path}`, 'utf16le').digest('hex').slice(0, 8);
    const unique = isUsable ? name : `${name.slice(0, longest - mark.length - 1)}_${mark}`;
    this.#names.add(unique);
    return unique;
  }

  #template(path: string, pathItem: Json, operation: Json): string[] {
    const servers = [operation['servers'], pathItem['servers'], this.#document.root['servers']]
      .map(elementsOf)
      .find((list) => list.length > 0);
    const base = this.#options.basePath ?? basePathOf(servers?.[0]);
    // Also finds dot segments that are percent-encoded.
    const whole = base + path;
    const isSafe =
      !/[?#\\]/.test(path) && canonicalPattern(whole.replace(/\{[^{}]*\}/g, 'x'), 'keep') !== undefined;
    if (!isSafe)
      throw new Unsupported('its path has a query, a fragment, a dot segment or invalid percent-encoding');
    return whole.split(/\{([^{}]*)\}/).map((part, index) => (index % 2 === 0 ? encodeLiteral(part) : part));
  }

  /** The parameters of an operation by group. Those of the operation replace those of its path. */
  #parameters(pathItem: Json, operation: Json, template: readonly string[], at: string) {
    const groups = new Map<Group, Described[]>(GROUPS.map((group) => [group, []]));
    const seen = new Set<string>();
    // The last declaration counts.
    const declared = [pathItem['parameters'], operation['parameters']].flatMap((list) =>
      Array.isArray(list) ? list : [],
    );
    for (const node of declared.toReversed()) {
      const value = dereference(this.#document, node, at);
      if (!isObject(value)) throw new DocumentError(`${at}: a parameter is not an object`);
      const { name, in: place } = value;
      if (typeof name !== 'string' || name === '') throw new DocumentError(`${at}: a parameter has no name`);
      const key = `${shownValue(place)} ${place === 'header' ? name.toLowerCase() : name}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const described = this.#parameter(name, place, value, template, at);
      if (described !== undefined) groups.get(described.parameter.group)?.unshift(described);
    }
    for (const [index, name] of template.entries()) {
      if (index % 2 === 0 || seen.has(`path ${name}`)) continue;
      seen.add(`path ${name}`);
      const parameter = { group: 'path', name, isRequired: true, style: 'simple', explode: false } as const;
      groups.get('path')?.push({ parameter, schema: { type: 'string' }, length: 0, references: [] });
    }
    return groups;
  }

  #parameter(
    name: string,
    place: unknown,
    value: Json,
    template: readonly string[],
    at: string,
  ): Described | undefined {
    const isRequired = place === 'path' || value['required'] === true;
    const group = GROUPS.find((each) => each === place);
    if (group === 'path' && !template.some((part, index) => index % 2 === 1 && part === name))
      return undefined;
    if (group === 'header') {
      const lower = name.toLowerCase();
      if (IGNORED_HEADERS.has(lower) || this.#options.ownHeaders.has(lower)) return undefined;
    }
    if (group === 'cookie' && this.#options.ownHeaders.has('cookie')) return undefined;
    const content = value['content'];
    const usual = group === 'query' || group === 'cookie' ? 'form' : 'simple';
    const style = isObject(content) ? 'json' : (value['style'] ?? usual);
    const known = group === undefined ? undefined : STYLES[group].find((each) => each === style);
    const isSupported =
      group !== undefined &&
      known !== undefined &&
      (group !== 'header' || isSettableHeader(name)) &&
      (group !== 'cookie' || isHeaderName(name)) &&
      (!isObject(content) || jsonType(content) !== undefined);
    if (!isSupported) {
      if (!isRequired) return undefined;
      throw new Unsupported(
        `its parameter ${shown(name)} in ${shown(shownValue(place))} cannot be sent in the style ${shown(shownValue(style))}`,
      );
    }
    const own = isObject(content) ? membersOf(content[jsonType(content) ?? ''])['schema'] : value['schema'];
    const converted = this.#schemas.convert(own, `${at} ${group}.${shown(name)}`, this.#longest);
    const { schema } = converted;
    const { description } = value;
    const explode = typeof value['explode'] === 'boolean' ? value['explode'] : style === 'form';
    return {
      ...converted,
      parameter: { group, name, isRequired, style: known, explode },
      schema:
        typeof description === 'string' && typeof schema === 'object'
          ? { ...schema, description: cut(description) }
          : schema,
    };
  }

  #body(operation: Json, at: string): Body | undefined {
    const body = dereference(this.#document, operation['requestBody'], `${at} requestBody`);
    if (!isObject(body)) return undefined;
    const isRequired = body['required'] === true;
    const content = isObject(body['content']) ? body['content'] : {};
    const type = jsonType(content);
    if (type !== undefined) {
      const { schema } = (isObject(content[type]) ? content[type] : {}) as { schema?: unknown };
      return { ...this.#schemas.convert(schema, `${at} requestBody`, this.#longest), type, isRequired };
    }
    const form = Object.keys(content).find((each) => each.split(';')[0]?.trim().toLowerCase() === FORM_TYPE);
    if (form !== undefined) {
      const { schema, encoding } = (isObject(content[form]) ? content[form] : {}) as Json;
      const fields = readFormFields(encoding);
      if (typeof fields === 'string') throw new Unsupported(fields);
      const converted = this.#schemas.convert(schema, `${at} requestBody`, this.#longest);
      return { ...converted, type: FORM_TYPE, form: fields, isRequired };
    }
    if (!isRequired) return undefined;
    throw new Unsupported(
      `its body is ${shown(Object.keys(content)[0] ?? 'of no type')}, not JSON or a form`,
    );
  }

  /** Arguments are grouped by their place (upstream's rule), because names are only unique within one. */
  #inputSchema(groups: ReadonlyMap<Group, readonly Described[]>, body: Body | undefined): Json {
    const properties: [string, JsonSchema][] = [];
    const required: string[] = [];
    for (const [group, all] of groups) {
      if (all.length === 0) continue;
      const needed = all
        .filter(({ parameter }) => parameter.isRequired)
        .map(({ parameter }) => parameter.name);
      if (needed.length > 0) required.push(group);
      const described = all.map(({ parameter, schema }) => [parameter.name, schema] as const);
      properties.push([group, objectSchema(described, needed)]);
    }
    if (body !== undefined) properties.push(['body', body.schema]);
    if (body?.isRequired === true) required.push('body');
    const parts: Converted[] = [...groups.values(), body ?? []].flat();
    const used = parts.reduce((total, { length }) => total + length, 0);
    const references = parts.flatMap((part) => part.references);
    const definitions = this.#schemas.definitions(references, this.#longest - used);
    return { ...objectSchema(properties, required), ...(definitions && { $defs: definitions }) };
  }
}

/** A parameter and its schema for clients. */
interface Described extends Converted {
  readonly parameter: Parameter;
}

interface Body extends Converted {
  readonly type: string;
  readonly form?: FormFields;
  readonly isRequired: boolean;
}

function objectSchema(
  properties: readonly (readonly [string, JsonSchema])[],
  required: readonly string[],
): Json {
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

/** Title, description and hints of a tool (MCP 2025-11-25, "Tool"). */
function described({ summary, description, deprecated }: Json, method: string): Json {
  const title = typeof summary === 'string' && summary !== '' ? summary : undefined;
  const text = typeof description === 'string' && description !== '' ? description : title;
  const parts = [deprecated === true ? 'Deprecated.' : undefined, text].filter((part) => part !== undefined);
  return {
    ...(title !== undefined && text !== title && { title: cut(title) }),
    ...(parts.length > 0 && { description: cut(parts.join(' ')) }),
    annotations: HINTS[method] ?? { readOnlyHint: false },
  };
}

/** Safe and idempotent methods (RFC 9110 §9.2). Without a hint, clients assume that a tool is destructive. */
const HINTS: Readonly<Record<string, Json>> = {
  get: { readOnlyHint: true },
  head: { readOnlyHint: true },
  options: { readOnlyHint: true },
  put: { readOnlyHint: false, idempotentHint: true },
  delete: { readOnlyHint: false, idempotentHint: true },
};

const cut = (text: string): string =>
  text.length > LIMITS.openApiDescriptionLength ? `${text.slice(0, LIMITS.openApiDescriptionLength)}…` : text;

const toolName = (text: string): string => {
  const name = text
    .slice(0, 1_000)
    .replace(/[^A-Za-z0-9_-]+/g, '_')
    .replace(/^_+|_+$/g, '');
  return /[A-Za-z0-9]/.test(name) ? name : '';
};

/** The JSON media type of a `content` object, such as `application/json` or `application/vnd.api+json`. */
function jsonType(content: Json): string | undefined {
  const types = Object.keys(content).filter((type) =>
    /^application\/(?:[\w.+-]+\+)?json(?:\s*;.*)?$/i.test(type),
  );
  const type = types.find((each) => /^application\/json\b/i.test(each)) ?? types[0];
  return type !== undefined && /^[\x20-\x7e]*$/.test(type) ? type : undefined;
}

/** Path of a server's URL with the defaults of its variables, without a slash at the end; relative to `/`. */
function basePathOf(server: unknown): string {
  if (!isObject(server) || typeof server['url'] !== 'string') return '';
  const variables = isObject(server['variables']) ? server['variables'] : {};
  const url = server['url'].replace(/\{([^{}]*)\}/g, (_whole, name: string) => {
    const variable = member(variables, name);
    return isObject(variable) ? shownValue(variable['default'] ?? '') : '';
  });
  if (!URL.canParse(url, 'http://localhost/')) throw new DocumentError(`servers: ${shown(url)} is not a URL`);
  return new URL(url, 'http://localhost/').pathname.replace(/(?<!\/)\/+$/, '');
}

/** Encodes what must not be in a path; percent-encoded characters stay as they are. */
const encodeLiteral = (text: string): string => canonicalPattern(`/${text}`, 'keep')?.slice(1) ?? '';
