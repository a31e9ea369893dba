import { elementsOf, membersOf, stringIn } from '../../../core/foreign.ts';
import { type Schema, schemaIn } from './schema-form.tsx';

/** A tool, prompt or resource from a server's list. */
export interface Item {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: Schema;
  readonly uri?: string;
  /** All that the server says of it, as text: what a model gets to know. */
  readonly definition: string;
  readonly arguments?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly required?: boolean;
  }[];
}

/** Reads an entry of a server's list; nothing if it has no name. Members of another type are missing. */
export function itemIn(json: unknown): readonly Item[] {
  const { name, title, description, inputSchema, uri, arguments: list } = membersOf(json);
  if (typeof name !== 'string') return [];
  return [
    {
      name,
      definition: JSON.stringify(json, null, 2),
      ...(typeof title === 'string' ? { title } : {}),
      ...(typeof description === 'string' ? { description } : {}),
      ...(typeof uri === 'string' ? { uri } : {}),
      inputSchema: schemaIn(inputSchema),
      arguments: elementsOf(list).map(membersOf).flatMap(argumentIn),
    },
  ];
}

function argumentIn(json: Readonly<Record<string, unknown>>): NonNullable<Item['arguments']>[number][] {
  const name = stringIn(json['name']);
  const description = stringIn(json['description']);
  if (name === undefined) return [];
  const required = json['required'] === true;
  return [{ name, required, ...(description === undefined ? {} : { description }) }];
}
