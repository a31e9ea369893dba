import { LIMITS } from '../../core/limits.ts';
import { createLog } from '../../core/log.ts';
import { detailOf } from '../../server/mcp/target-failure.ts';
import { stdio } from '../../server/mcp/targets/stdio.ts';
import { toolsOf } from '../../server/mcp/try-target.ts';
import { createContext } from '../../server/runtime/compile-context.ts';
import { compileRuntime } from '../../server/runtime/runtime.ts';
import { type CheckContext, type CheckResult, fail, ok } from './check.ts';

/** The `stdio` section of a target. */
export type StdioConfig = Parameters<typeof stdio.compile>[1];

/** Starts the commands of stdio targets as the gateway would, a few at a time, and requests the tool list of each. */
export class TargetStarter {
  readonly #context: CheckContext;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(context: CheckContext) {
    this.#context = context;
  }

  async start(name: string, config: StdioConfig): Promise<CheckResult> {
    if (this.#running < LIMITS.checkStarts) this.#running += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await this.#tools(name, config);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  async #tools(name: string, config: StdioConfig): Promise<CheckResult> {
    const { loaded, env, folder } = this.#context;
    if (loaded.config === undefined) throw new Error('there is no configuration');
    const options = { config: loaded.config, source: loaded.source, log: silent, env, folder };
    const { runtime } = compileRuntime(options);
    const { settings, redactor, inspection } = runtime;
    const context = { ...options, settings, redactor, inspection, report: () => undefined };
    const began = performance.now();
    try {
      const target = stdio.compile(name, config, createContext(context, [], new Set(), []));
      const tools = await toolsOf(target, silent);
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      return ok(`${name}   started in ${seconds} s, ${list(tools)}`);
    } catch (error) {
      return fail(
        `${name}   ${detailOf(error)}`,
        "if its stderr does not say why, run the command manually; it gets only part of agctl's environment, and stdio.env adds variables",
      );
    } finally {
      await runtime.close();
    }
  }
}

const MOST_TOOLS = 50;

function list(tools: readonly string[]): string {
  if (tools.length === 0) return 'no tools';
  const more = tools.length - MOST_TOOLS;
  const names = tools.slice(0, MOST_TOOLS).join(', ') + (more > 0 ? ` and ${more} more` : '');
  return `${tools.length === 1 ? '1 tool' : `${tools.length} tools`}: ${names}`;
}

const silent = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'off',
  'text',
);
