import type { CommandError } from '../core/exit-codes.ts';
import type { Context } from './context.ts';
import { asCalled } from './invocation.ts';

/** Writes to stderr why a command has failed, and what helps. */
export function explain({ message, help }: CommandError, context: Context): void {
  const text = `error: ${message}\n${help === undefined ? '' : `  = help: ${help}\n`}`;
  context.stderr.write(asCalled(text, context));
}
