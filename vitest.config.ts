import { join, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { KNOWN_FLAKY, retriedReporter } from './test/kit/known-flaky.ts';
import { LONGEST, programFiles, slowFiles, THOROUGH } from './test/kit/selection.ts';

/** `npm run test:interop` sets it: its tests need other people's software, and run alone. */
const isInterop = process.env['AGCTL_INTEROP'] !== undefined;

/**
 * Long files begin first, so that none is left alone at the end. Vitest knows what took long only after a first run; in a
 * new clone it goes by size, and `kill.test.ts` is a short file. After them what starts programs, while workers are small:
 * Linux copies the page tables of a process for each that it starts, which takes 3 ms of processor time in a worker of 100 MB
 * and 30 ms in one of 1 GB. `tool-search/rules.test.ts` took 10.7 s of processor time in a new worker, 14.1 s with 400 MB
 * more, and 16.8 s with 800 MB more.
 */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const programs = new Set(programFiles());
    const slow = new Set(slowFiles());
    const rank = ({ moduleId }: TestSpecification): number => {
      const file = relative(import.meta.dirname, moduleId);
      const place = LONGEST.indexOf(file);
      if (place >= 0) return place;
      if (programs.has(file)) return LONGEST.length;
      return LONGEST.length + (slow.has(file) ? 1 : 2);
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig(({ mode }) => ({
  test: {
    // Many tests wait for timers and processes: five files at a time keep two cores busy. Six took as long.
    maxWorkers: 5,
    sequence: { sequencer: LongFilesFirst },
    // Programs in Python and Go start slowly on a busy machine.
    testTimeout: isInterop ? 300_000 : 60_000,
    hookTimeout: isInterop ? 300_000 : 60_000,
    // Node.js keeps compiled code there, for workers and for what they start: `agctl` takes a third less CPU time to start.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node') },
    // Ends what a test has started and left running.
    setupFiles: ['test/kit/children.ts'],
    retry: KNOWN_FLAKY.length === 0 ? 0 : 1,
    reporters: [
      'default',
      ...(process.env['GITHUB_ACTIONS'] === undefined ? [] : ['github-actions']),
      retriedReporter(),
    ],
    include: isInterop ? ['test/interop/**/*.test.ts'] : ['test/**/*.test.ts'],
    exclude: [
      ...(isInterop ? [] : ['test/interop/**']),
      ...(mode === 'fast' ? slowFiles() : []),
      ...(process.env['AGCTL_THOROUGH'] === undefined ? THOROUGH : []),
    ],
    // Loading the whole of `src` takes a second for each file; a worker loads it once.
    isolate: isInterop,
  },
}));
