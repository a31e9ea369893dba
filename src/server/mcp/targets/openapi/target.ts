import { z } from 'zod';
import { messageOf } from '../../../../core/errors.ts';
import { mapping, nonEmpty } from '../../../../core/schema/mapping.ts';
import { VERSION } from '../../../../core/version.ts';
import type { CompileContext } from '../../../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../../../kernel/files/config-file.ts';
import { isHeaderValue } from '../../../kernel/request/header-list.ts';
import { createUpstream } from '../../../transport/upstream/upstream.ts';
import { defineTarget, type Target } from '../../connection/target.ts';
import { endpointFields, targetEndpoint, unusableTarget } from '../endpoint.ts';
import { isApiHeader, OpenApiChannel } from './channel.ts';
import { DocumentError, isObject, parseDocument } from './document.ts';
import { type OperationOptions, readOperations } from './operations.ts';
import {
  type Description,
  type DescriptionSource,
  FileSource,
  readDocumentFile,
  UrlSource,
} from './source.ts';

const schema = z.lazy(() =>
  mapping(
    "An HTTP API, described by an OpenAPI document. Each operation becomes a tool, whose arguments are grouped as `path`, `query`, `header`, `cookie` and `body`. A path in `host` or `path` replaces that of the document's `servers`.",
    {
      schema: z
        .union([
          nonEmpty,
          z.strictObject({ file: nonEmpty.describe('File with the document, in JSON or YAML.') }),
          z.strictObject({ url: z.url({ protocol: /^https?$/ }).describe('URL of the document.') }),
          z.looseObject({ openapi: z.string().describe('Version of an inline document.') }),
        ])
        .describe(
          'OpenAPI document (3.0 or 3.1): `file`, `url`, or the document itself, in which `$ref` is written `$$ref`. References to other documents are not followed.',
        ),
      ...endpointFields('API', 'https://api.example.com'),
      headers: z
        .record(nonEmpty, z.string())
        .default({})
        .meta({ secret: true })
        .describe('Headers of every request to the API, such as its key. Callers cannot replace them.'),
    },
  ).meta({ foreignNames: { url: 'host', spec: 'schema', document: 'schema' } }),
);

type OpenApiConfig = z.output<typeof schema>;

/** Operations that are not offered and that the log lists. */
const LISTED = 10;

/** An HTTP API, whose operations the gateway offers as tools of an MCP server in this process. */
export const openapi = defineTarget({
  key: 'openapi',
  schema,
  hasPolicies: true,
  compile(name, config, context, { tls, credentials }): Target {
    const { limits } = context.settings;
    const endpoint = targetEndpoint(config, '/', context, tls !== undefined);
    const headers = headersOf(config, context);
    if (endpoint === undefined || headers === undefined) return unusableTarget(name, limits);
    const { address, url } = endpoint;
    const ownHeaders = new Set(Object.keys(config.headers).map((header) => header.toLowerCase()));
    const basePath = url.pathname === '/' ? undefined : url.pathname.replace(/(?<!\/)\/+$/, '');
    const source = sourceOf(name, config, { basePath, ownHeaders }, context);
    if (source === undefined) return unusableTarget(name, limits);
    const upstream = createUpstream(address, {
      meter: context.settings.callMeter('Primary', 'Mcp'),
      ...(tls !== undefined && { tls }),
    });
    return {
      name,
      limits,
      resumable: true,
      relatesMessages: true,
      endpoint: upstream.address,
      open: async (events) =>
        new OpenApiChannel(
          {
            name,
            log: context.log,
            upstream,
            credentials,
            headers,
            ...(await source.current()),
            current: () => source.current(),
          },
          events,
        ),
      clean: (text) => context.redactor().line(text),
      close: () => upstream.close(),
    };
  },
});

function headersOf({ headers }: OpenApiConfig, context: CompileContext): string[] | undefined {
  const all = Object.entries(headers);
  const invalid = all.find(([name, value]) => !isApiHeader(name) || !isHeaderValue(value));
  if (invalid === undefined) return all.flat();
  const [name, value] = invalid;
  context.at('headers', name).report({
    code: 'AGW0104',
    message: isApiHeader(name)
      ? `the value of header \`${name}\` has characters that a header cannot contain`
      : `\`${name}\` is not a header that can be set`,
    ...(isHeaderValue(value) && { atKey: true }),
    help: 'set headers such as `x-api-key` or `authorization`, not those about the connection, length or type of a message',
  });
  return undefined;
}

function sourceOf(
  target: string,
  { schema: given }: OpenApiConfig,
  options: OperationOptions,
  context: CompileContext,
): DescriptionSource | undefined {
  const { log } = context;
  const read = (text: string): Description => {
    const { omitted, ...description } = describe(text, options);
    if (omitted.length > 0)
      log.warn('mcp::openapi', 'operations of a target are not offered as tools', {
        target,
        operations: omitted.length,
        reasons: omitted.slice(0, LISTED).join('; '),
      });
    return description;
  };
  if (typeof given === 'object' && 'url' in given && !('openapi' in given))
    return new UrlSource(new URL(given.url as string), read, log, context.settings.limits);
  const at = context.at('schema');
  if (typeof given === 'object' && 'file' in given && !('openapi' in given)) {
    const file = resolveConfigFile(context.folder, given.file as string);
    const warn = (problem: string): void =>
      log.warn('mcp::openapi', 'the changed document of a target cannot be used; the earlier one is used', {
        target,
        problem,
      });
    return reported(
      () => new FileSource(file, () => read(readDocumentFile(file)), warn),
      at.at('file'),
      missingConfigFile(context.folder, given.file as string),
    );
  }
  return reported(() => {
    const description = read(typeof given === 'string' ? given : JSON.stringify(given));
    return { current: () => Promise.resolve(description) };
  }, at);
}

/** Runs `create` and reports its error here. `missing`: that its file does not exist. */
function reported<T>(create: () => T, at: CompileContext, missing?: string): T | undefined {
  try {
    return create();
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    at.report({
      code: error instanceof DocumentError ? 'AGW0104' : isMissing ? 'AGW0107' : 'AGW0005',
      message: isMissing && missing !== undefined ? missing : messageOf(error),
      ...(error instanceof DocumentError
        ? { label: 'OpenAPI document' }
        : { help: 'save the OpenAPI document there, or set its URL as `schema: { url: … }`' }),
    });
    return undefined;
  }
}

function describe(
  text: string,
  options: OperationOptions,
): Description & { readonly omitted: readonly string[] } {
  const document = parseDocument(text);
  const { info } = document.root as { info?: { title?: unknown; version?: unknown } };
  const { title, version } = isObject(info) ? info : {};
  return {
    ...readOperations(document, options),
    serverInfo: {
      name: typeof title === 'string' && title !== '' ? title.slice(0, 200) : 'OpenAPI',
      version: typeof version === 'string' ? version.slice(0, 64) : VERSION,
    },
  };
}
