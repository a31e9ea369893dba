import type { Schema } from './schema-form.tsx';

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
