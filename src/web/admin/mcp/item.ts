import type { Schema } from './schema.ts';

/** A tool, prompt or resource from a server's list. */
export interface Item {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: Schema;
  readonly uri?: string;
  readonly arguments?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly required?: boolean;
  }[];
}

export type ItemKind = 'tools' | 'prompts' | 'resources';

/** The request for each kind of item, and its arguments. */
export const CALLS: Readonly<
  Record<ItemKind, { readonly method: string; readonly verb: string; readonly one: string }>
> = {
  tools: { method: 'tools/call', verb: 'Call', one: 'tool' },
  prompts: { method: 'prompts/get', verb: 'Get', one: 'prompt' },
  resources: { method: 'resources/read', verb: 'Read', one: 'resource' },
};

export const idOf = ({ uri, name }: Item): string => uri ?? name;

/** The schema for the form of an item. */
export function schemaOf(kind: ItemKind, item: Item): Schema | undefined {
  if (kind === 'tools') return item.inputSchema;
  if (kind === 'resources') return undefined;
  const list = item.arguments ?? [];
  return {
    properties: Object.fromEntries(
      list.map(({ name, description }) => [
        name,
        { type: 'string', ...(description === undefined ? {} : { description }) },
      ]),
    ),
    required: list.filter(({ required }) => required === true).map(({ name }) => name),
  };
}

export function paramsOf(kind: ItemKind, item: Item, values: Readonly<Record<string, unknown>>): object {
  return kind === 'resources' ? { uri: item.uri } : { name: item.name, arguments: values };
}
