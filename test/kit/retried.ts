import type { Reporter, TestModule } from 'vitest/node';

/** Says at the end which tests did not pass at once: vitest shows that only beside slow ones. */
export const retriedReporter: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules.flatMap((module) =>
      [...module.children.allTests()].flatMap((test) => {
        const { flaky = false, retryCount = 0 } = test.diagnostic() ?? {};
        return flaky
          ? [`  ${module.relativeModuleId} > ${test.fullName}: passed at try ${retryCount + 1}`]
          : [];
      }),
    );
    if (lines.length > 0) process.stderr.write(`\nNOT AT ONCE, SO PERHAPS A RACE:\n${lines.join('\n')}\n\n`);
  },
};
