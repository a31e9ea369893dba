import type { Reporter, TestModule } from 'vitest/node';

/** Tests that may need a second try. */
export interface Flaky {
  /** File, or folder with a slash at its end, relative to the project. */
  readonly tests: string;
  /** Why that is a fault neither of the product nor of the test. */
  readonly reason: string;
}

/**
 * No test is retried while this list is empty; while it is not, a test that is not listed still fails the run when it
 * passes only at a retry. One that races is to be fixed: wait for the event, not for a time.
 */
export const KNOWN_FLAKY: readonly Flaky[] = [];

/** Fails a run in which a test passed only at a later try, unless `allowed` names it; says which in any case. */
export function retriedReporter(allowed: readonly Flaky[] = KNOWN_FLAKY): Reporter {
  return {
    onTestRunEnd(modules: readonly TestModule[]): void {
      const retried = modules.flatMap((module) =>
        [...module.children.allTests()].flatMap((test) => {
          const { flaky = false, retryCount = 0 } = test.diagnostic() ?? {};
          const { relativeModuleId: file } = module;
          return flaky
            ? [{ file, line: `  ${file} > ${test.fullName}: passed at try ${retryCount + 1}` }]
            : [];
        }),
      );
      const isAllowed = ({ file }: { readonly file: string }): boolean =>
        allowed.some(({ tests }) => (tests.endsWith('/') ? file.startsWith(tests) : file === tests));
      say('RETRIED, as test/kit/known-flaky.ts allows', retried.filter(isAllowed));
      const refused = retried.filter((each) => !isAllowed(each));
      say(
        'FAILED: passed only at a retry, so perhaps a race. Fix it, or name it in test/kit/known-flaky.ts',
        refused,
      );
      if (refused.length > 0) process.exitCode = 1;
    },
  };
}

function say(title: string, retried: readonly { readonly line: string }[]): void {
  if (retried.length > 0)
    process.stderr.write(`\n${title}:\n${retried.map(({ line }) => line).join('\n')}\n\n`);
}
