import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Selection } from './apis.ts';

// What users ask their agents and what an agent then searches for. Tasks, words and tools were written from the lists of tools
// before any search existed; the queries by a model that saw the tasks and the definition of `search_tools`, but no tool. Results
// must not lead to changes of tasks.json.

const task = z.strictObject({
  /** What the user says. */
  task: z.string(),
  /** The task in two to eight words of the user, mostly others than those of the API: what an agent should not search for. */
  words: z.string().regex(/^\S+(?: \S+){1,7}$/),
  /** What an agent searches for first. */
  query: z.string(),
  /** Names of tools that do it, each of them alone. */
  tool: z.array(z.string()).nonempty(),
});
export type Task = z.output<typeof task>;

const FILES = { heldOut: 'tasks.json', dev: 'dev-tasks.json' };

/** Tasks for the tools of a selection. */
export function readTasks(selection: Selection): Task[] {
  const text = readFileSync(join(import.meta.dirname, FILES[selection]), 'utf8');
  return z.array(task).parse(JSON.parse(text));
}
