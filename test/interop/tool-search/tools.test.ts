import { describe, expect, test } from 'vitest';
import { type Selection, startApis } from './apis.ts';
import { readTasks } from './tasks.ts';

/** The part of a list of tools that a model reads. */
async function listed(selection: Selection): Promise<{ names: string[]; size: string }> {
  await using gate = await startApis(selection);
  const tools = await gate.tools();
  const text = JSON.stringify(tools);
  // As the gateway estimates tokens that nobody reported: four bytes each.
  const tokens = Math.ceil(Buffer.byteLength(text) / 4);
  return {
    names: tools.map(({ name }) => name),
    size: `${tools.length} tools, ${text.length} characters, about ${tokens} tokens`,
  };
}

const toolsOf = (selection: Selection): Set<string> =>
  new Set(readTasks(selection).flatMap(({ tool }) => tool));

describe.each([
  { selection: 'heldOut', least: 300, most: 320, tasks: 40, shares: { github: 24, figma: 8, notion: 8 } },
  { selection: 'dev', least: 200, most: 250, tasks: 30, shares: { github: 30 } },
] as const)('$selection', ({ selection, least, most, tasks, shares }) => {
  test('the gateway lists the tools, and every tool of a task is among them', async () => {
    const { names, size } = await listed(selection);
    console.info(`${selection}: ${size}`);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThanOrEqual(least);
    expect(names.length).toBeLessThanOrEqual(most);
    expect([...toolsOf(selection)].filter((name) => !names.includes(name))).toEqual([]);
  });

  test('the tasks are of all APIs and differ', () => {
    const all = readTasks(selection);
    expect(new Set(all.map(({ query }) => query)).size).toBe(tasks);
    const apis = Object.groupBy(all, ({ tool: [first] }) => first.replace(/_.*/, ''));
    expect(Object.fromEntries(Object.entries(apis).map(([api, each]) => [api, each?.length]))).toEqual(
      shares,
    );
  });
});

test('no tool of a task for tuning is one of the tools that are judged', async () => {
  const { names } = await listed('heldOut');
  expect([...toolsOf('dev')].filter((name) => names.includes(name))).toEqual([]);
});
