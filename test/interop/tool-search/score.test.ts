import { expect, test } from 'vitest';
import { scoreSearch } from './score.ts';
import type { Task } from './tasks.ts';

/** A task whose right tools are `right` and `also right`. */
const task = (query: string): Task => ({
  task: `Do ${query}.`,
  words: query,
  query,
  tool: ['right', 'also right'],
});

/** Names of which the one at this place, counted from one, is right. */
const rightAt = (rank: number, right = 'right'): string[] =>
  Array.from({ length: 12 }, (_, index) => (index === rank - 1 ? right : `wrong ${index + 1}`));

test('counts tasks with a right tool among the first 1, 5 and 10, and names the others', async () => {
  const answers: Record<string, string[]> = {
    first: rightAt(1),
    second: rightAt(2, 'also right'),
    fifth: rightAt(5),
    sixth: rightAt(6),
    tenth: rightAt(10),
    eleventh: rightAt(11),
    never: ['wrong'],
    empty: [],
    several: ['wrong', 'also right', 'right'],
  };
  const searched: string[] = [];
  const search = async (query: string): Promise<string[]> => {
    searched.push(query);
    return answers[query] ?? [];
  };
  const { misses, ...counts } = await scoreSearch(Object.keys(answers).map(task), search);
  expect(searched).toEqual(Object.keys(answers));
  expect(counts).toEqual({ tasks: 9, first1: 1, first5: 4, first10: 6 });
  const wrong = ['wrong 1', 'wrong 2', 'wrong 3', 'wrong 4', 'wrong 5'];
  expect(misses).toEqual([
    { ...task('sixth'), rank: 6, found: wrong },
    { ...task('tenth'), rank: 10, found: wrong },
    { ...task('eleventh'), rank: 11, found: wrong },
    { ...task('never'), rank: undefined, found: ['wrong'] },
    { ...task('empty'), rank: undefined, found: [] },
  ]);
});

test('no tasks are no hits and no misses', async () => {
  expect(await scoreSearch([], async () => [])).toEqual({
    tasks: 0,
    first1: 0,
    first5: 0,
    first10: 0,
    misses: [],
  });
});
