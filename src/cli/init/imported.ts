import type { CatalogText } from '../../server/llm/cost/catalog-schema.ts';

/** A part of a file that has no counterpart in a configuration; the message is the reason, for people. */
export class NotImported extends Error {}

/** Something that was left out, and why. */
export interface LeftOut {
  /** What it is, and in which file: `github in ~/.cursor/mcp.json`. */
  readonly what: string;
  readonly reason: string;
  /** A model, whose calls now fail or go elsewhere, or what limited or checked calls. */
  readonly isWarning?: boolean;
}

/** An entry of a list of the configuration, and the file it comes from. */
export interface ImportedEntry {
  readonly value: Readonly<Record<string, unknown>> & { readonly name: string };
  readonly source: string;
  /** Variables without a value that a server needs, or may need: its file does not say. */
  readonly awaited?: readonly string[];
  /** What a server of a registry would get of this machine, or show to others, beside what servers usually do; for people. */
  readonly risks?: readonly string[];
}

/** What files contribute to a configuration. */
export interface Imported {
  readonly targets: ImportedEntry[];
  readonly models: ImportedEntry[];
  readonly virtualModels: ImportedEntry[];
  /** Keys that clients must send, as references. */
  readonly clientKeys: string[];
  /** Policies of the models, by their keys. */
  readonly policies: Record<string, unknown>;
  /** Policies of the MCP servers, by their keys. */
  readonly mcpPolicies: Record<string, unknown>;
  /** `bundles` of the MCP servers. */
  readonly bundles: { readonly name: string; readonly targets: readonly string[] }[];
  /** Price catalogs, of providers by their names in telemetry. */
  readonly prices: CatalogText['providers'][];
  readonly leftOut: LeftOut[];
  /** What was decided in between, for people. */
  readonly notes: string[];
}

export const nothingImported = (): Imported => ({
  targets: [],
  models: [],
  virtualModels: [],
  clientKeys: [],
  policies: {},
  mcpPolicies: {},
  bundles: [],
  prices: [],
  leftOut: [],
  notes: [],
});
