import { expect, test } from 'vitest';
import { z } from 'zod';
import { type Selection, startApis } from './apis.ts';
import { scoreSearch } from './score.ts';
import { readTasks } from './tasks.ts';

const result = z.object({ content: z.array(z.object({ text: z.string() })).nonempty() });
const found = z.array(z.object({ name: z.string(), inputSchema: z.looseObject({}) }));

const characters = (value: unknown): number => JSON.stringify(value).length;

test.each([
  // 30 were used to choose words and weights, 40 were not.
  { selection: 'dev', least: 28 },
  { selection: 'heldOut', least: 38 },
] satisfies { selection: Selection; least: number }[])(
  'an agent finds the tools of $least tasks of $selection among the first five of its first search',
  async ({ selection, least }) => {
    await using plain = await startApis(selection);
    await using gate = await startApis(selection, { toolSearch: {} });
    const saved = 1 - characters(await gate.tools()) / characters(await plain.tools());
    expect(saved).toBeGreaterThan(0.9);
    const times: number[] = [];
    const search = async (query: string): Promise<string[]> => {
      const since = performance.now();
      const answer = await gate.client.callTool({ name: 'search_tools', arguments: { query, limit: 10 } });
      times.push(performance.now() - since);
      const [{ text }] = result.parse(answer).content;
      return text.startsWith('[') ? found.parse(JSON.parse(text)).map(({ name }) => name) : [];
    };
    const tasks = readTasks(selection);
    const score = await scoreSearch(tasks, search);
    const words = await scoreSearch(
      tasks.map((task) => ({ ...task, query: task.words })),
      search,
    );
    const [slowest = 0] = times.slice(1).toSorted((one, other) => other - one);
    console.info(
      `${selection}: ${score.first5} of ${score.tasks} among the first five (${score.first1} first); with the user's words ${words.first5}; list ${(saved * 100).toFixed(1)} % smaller; slowest search ${slowest.toFixed(1)} ms`,
    );
    for (const { query, rank } of score.misses) console.info(`missed: "${query}", place ${rank ?? 'none'}`);
    expect(score.first5).toBeGreaterThanOrEqual(least);
  },
);
