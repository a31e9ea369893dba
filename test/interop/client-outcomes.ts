import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'vitest';

// What client programs in other languages print about their calls of `chatModels`: the outcome of each, by its name.

export type Outcomes = Readonly<Record<string, unknown>>;

/** Runs a program; what it prints is its report. */
export async function outcomesOf(program: readonly string[]): Promise<Outcomes> {
  const [file, ...args] = program;
  const { stdout } = await promisify(execFile)(file as string, args, { timeout: 240_000 });
  return JSON.parse(stdout) as Outcomes;
}

/** The outcome of a call for which a Python client raised an exception of this class. */
export const raised = (name: string, status: number | null, message = ''): object => ({
  raised: name,
  status,
  message: expect.stringContaining(message) as string,
});

/** The image in `samples.py`, as a data URL. */
const PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

// Answers of the server behind the models.
export const SAID = {
  greeting: 'You said: Hello, wörld 🌍 by order of: Be brief.',
  hello: 'You said: Hello by order of: Be brief.',
  words: 'You said: one two three',
  image: `You said: Look: ${PNG}`,
  result: 'The tool said: sunny',
} as const;

export const CITY = { city: 'Paris' };
export const CITY_TEXT = '{"city":"Paris"}';
export const WEATHER = { city: 'Paris', degrees: 21 };
