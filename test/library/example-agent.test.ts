import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PACKAGE_NAME } from '../../src/core/version.ts';
import { stubModel } from '../../src/library/testing/index.ts';
import { temporaryFolder } from '../kit/folder.ts';

// The example in examples/agent, as its README says it is installed.

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

describe('examples/agent', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  beforeAll(async () => {
    folder = await temporaryFolder();
    cpSync(join(root, 'examples/agent'), folder.path, {
      recursive: true,
      filter: (path) => !path.endsWith('node_modules'),
    });
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(join(folder.path, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string>>;
    for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
      const place = join(folder.path, 'node_modules', name);
      mkdirSync(join(place, '..'), { recursive: true });
      symlinkSync(name === PACKAGE_NAME ? root : join(root, 'node_modules', name), place);
    }
  });
  afterAll(() => folder.remove());

  async function vitest(env: NodeJS.ProcessEnv): Promise<{ numPassedTests: number; numTotalTests: number }> {
    const program = join(folder.path, 'node_modules/vitest/vitest.mjs');
    const options = { cwd: folder.path, timeout: 60_000, env: { PATH: process.env['PATH'], ...env } };
    await run(process.execPath, [program, 'run', '--reporter=json', '--outputFile=report.json'], options);
    return JSON.parse(readFileSync(join(folder.path, 'report.json'), 'utf8'));
  }

  test('its tests pass without a model, a server or a key', async () => {
    expect(await vitest({})).toMatchObject({ numPassedTests: 2, numTotalTests: 2 });
  });

  test('its tests record again, and what is recorded is replayed', async () => {
    await using model = await stubModel();
    const { baseUrl, apiKey } = model.as('openAI').params;
    model.answer(
      { toolCalls: [{ name: 'find_order', arguments: { number: 'A-17' } }] },
      'It arrives on Thursday.',
      'I cannot do that.',
    );
    const env = { RECORD: '1', OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseUrl };
    expect(await vitest(env)).toMatchObject({ numPassedTests: 2 });
    // The model got the order from the server, and was not told of the tool that is denied.
    expect(model.calls.map(({ tools }) => tools)).toEqual(Array(3).fill(['find_order']));
    expect(JSON.stringify(model.calls[1]?.messages)).toContain('on its way');
    expect(readFileSync(join(folder.path, 'cassettes/order.jsonl'), 'utf8')).toContain(
      'It arrives on Thursday.',
    );
    model.answer({ status: 500 });
    expect(await vitest({})).toMatchObject({ numPassedTests: 2 });
  });

  test('it is started and ended a hundred times in one process, without an open handle or a growing heap', async () => {
    writeFileSync(
      join(folder.path, 'often.ts'),
      `import { replayCassette } from '${PACKAGE_NAME}/testing';
      import { answer } from './agent.ts';

      const often = async (times: number): Promise<number> => {
        for (let time = 0; time < times; time += 1) {
          const gateway = await replayCassette('cassettes/order.jsonl');
          if (!(await answer('When does my order A-17 arrive?', gateway.url)).includes('Thursday')) throw new Error('wrong');
          await gateway.close();
        }
        for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        globalThis.gc?.();
        return process.memoryUsage().heapUsed;
      };
      // The first runs compile code and fill caches.
      const first = await often(100);
      const last = await often(100);
      const handles = process.getActiveResourcesInfo().filter((name) => /TCP|Timeout|Process/.test(name));
      console.log(JSON.stringify({ grown: (last - first) / 2 ** 20, handles }));`,
    );
    const { stdout } = await run(process.execPath, ['--expose-gc', 'often.ts'], {
      cwd: folder.path,
      timeout: 60_000,
    });
    const { grown, handles } = JSON.parse(stdout) as { grown: number; handles: string[] };
    // A recording that was kept each time would be 2 MB.
    expect(grown).toBeLessThan(2);
    expect(handles).toEqual([]);
  });
});
