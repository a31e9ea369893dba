import { KIB, MIB, SECOND } from './units.ts';

/** Limits of targets with an OpenAPI document. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const OPENAPI_LIMITS = {
  /**
   * The document. The largest public ones (GitHub, parts of Microsoft Graph) have 12 MB of JSON. For YAML, the limits of
   * configuration files apply, because its parser needs 25 times as long.
   */
  openApiDocumentBytes: 16 * MIB,
  /** Response timeout of a document that is fetched from a URL. */
  openApiFetchTimeout: 10 * SECOND,
  /** How long a fetched document is used before it is fetched again for a new session. */
  openApiLifetime: 15 * 60 * SECOND,
  /**
   * Characters of one tool in `tools/list`. Schemas that do not fit are left out, innermost ones first: a schema may
   * refer to all others of a document, and models read all of it.
   */
  openApiToolLength: 32 * KIB,
  /** Characters of all tools together, which stay in memory. */
  openApiToolsLength: 64 * MIB,
  /** Characters of a tool's description. */
  openApiDescriptionLength: 4 * KIB,
  /** Tools per page of `tools/list`: 6,400 in the number of pages (`listPages`) that a merged list requests. */
  openApiPageTools: 100,
  /** A response of the API, which a tool result may contain twice. */
  openApiResponseBytes: 2 * MIB,
  /** Characters of an error response in a tool result. */
  openApiErrorLength: 8 * KIB,
} as const;
