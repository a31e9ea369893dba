import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Diagnostic } from '../../../core/diagnostic.ts';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { renderConcise } from '../../../core/render/machine.ts';
import type { Environment } from '../../../core/yaml/env.ts';
import type { YamlSource } from '../../../core/yaml/source.ts';
import { auditOf } from '../../audit/audit.ts';
import type { Actor } from '../../audit/event.ts';
import type { Change } from '../../audit/refusals.ts';
import { loadConfigText } from '../../config/load.ts';
import { redactorOf } from '../../config/redact.ts';
import type { Config } from '../../config/schema.ts';
import type { RereadProblem } from '../../kernel/files/reloaded-file.ts';
import { findProblems } from '../find-problems.ts';
import type { Gateway } from '../gateway.ts';
import { PortError, portDiagnostic } from '../port.ts';
import { buildRuntime, type Runtime } from '../runtime.ts';
import { ChangedFiles, changedNames, filesOf } from './changed-files.ts';
import { changesBetween, needRestart } from './changes.ts';
import { FileWatch } from './file-watch.ts';
import { auditReread, hashOf, inWords, rereadFiles, WATCH } from './reload-audit.ts';

/** The active configuration, with the source and diagnostics of the file that it was read from. */
export interface CurrentConfig {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly source: YamlSource;
  readonly diagnostics: readonly Diagnostic[];
}

/** State of configuration reloads. */
export interface ReloadState {
  /** Whether the file is watched for changes. */
  readonly isWatching: boolean;
  /** Whether the active configuration is the file as it was last read, i.e. the last reload succeeded. */
  readonly isSynchronized: boolean;
  /** Unix time in ms at which the active configuration took effect. */
  readonly servingSince: number;
  /** Successful reloads since the start. */
  readonly reloads: number;
  /** Time (Unix ms) and diagnostics of the last reload if it failed, otherwise undefined. */
  readonly failure: { readonly at: number; readonly diagnostics: readonly Diagnostic[] } | undefined;
}

export interface LiveConfigOptions {
  /** The configuration at start. */
  readonly served: CurrentConfig;
  readonly gateway: Pick<Gateway, 'reload' | 'filesChanged' | 'isClosing' | 'metrics'>;
  /** Absolute path of the file; undefined if the configuration is none: then `read` returns its text. */
  readonly path: string | undefined;
  readonly read?: () => string;
  /** The file as it was named on the command line, for messages. */
  readonly file: string;
  readonly folder: string;
  /** The variables at start. */
  readonly env: Environment;
  /** Undefined if all of them are those of the environment, which cannot change. */
  readonly variables?: VariablesFile | undefined;
  readonly log: Log;
}

/** A file of variables, such as `gateway.env`, which is read again by each reload. */
export interface VariablesFile {
  /** Absolute path. */
  readonly path: string;
  /** Returns its variables together with those of the environment. @throws Error if it cannot be read */
  read(): Environment;
}

const SCOPE = 'agctl::reload';

/**
 * The configuration of a running gateway. Reloads the file on request or after a change. If the file has an error, the
 * gateway keeps its configuration, the problems are logged, and `gw_config_synchronized` is 0 until a reload succeeds.
 */
export class LiveConfig {
  readonly #options: LiveConfigOptions;
  #served: CurrentConfig;
  /** The variables as they were last read. */
  #env: Environment;
  /** Text of the file as it was last read, whether it was valid or not. */
  #text: string | undefined;
  /** Other files that a reload depends on, including those that made the last one fail. */
  #compiledFrom: readonly string[];
  #state: Omit<ReloadState, 'isWatching' | 'isSynchronized'> = {
    servingSince: Date.now(),
    reloads: 0,
    failure: undefined,
  };
  #restartWarning = '';
  #watch: FileWatch | undefined;
  /** Reloads run one after the other. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting: { isForced: boolean; actor: Actor; done: Promise<boolean> } | undefined;
  /** What the last attempt has come to, for the audit; undefined if there was nothing to load. */
  #attempt: Pick<Change, 'outcome' | 'after' | 'detail'> | undefined;
  /** What the last reload has changed, for the audit: names, never values. */
  #changes: string | undefined;
  /** Of the active configuration, for the audit. */
  readonly #changed = new ChangedFiles();
  #isClosed = false;

  constructor(options: LiveConfigOptions) {
    this.#options = options;
    this.#served = options.served;
    this.#env = options.env;
    this.#text = options.served.source.text;
    this.#compiledFrom = options.served.runtime.files;
    this.#changed.of(filesOf(options.served.runtime));
  }

  get served(): CurrentConfig {
    return this.#served;
  }

  /** The variables of the active configuration. */
  get env(): Environment {
    return this.#served.runtime.env;
  }

  get state(): ReloadState {
    return {
      ...this.#state,
      isWatching: this.#watch !== undefined,
      isSynchronized: this.#state.failure === undefined,
    };
  }

  /** Starts watching the file and the files that it refers to. Resolves once they are watched. */
  async watch(): Promise<void> {
    this.#watch = new FileWatch(this.#options.log, (files) => this.#filesChanged(files));
    await this.#watchFiles();
    // The file may have changed since the start.
    await this.#enqueue(false, WATCH);
  }

  /**
   * Reloads the file even if it has not changed, and all files that it names: they need not be watched. Resolves to whether it is
   * now the active configuration. `actor`: who asks for that, for the audit.
   */
  async reload(actor: Actor = { kind: 'program' }): Promise<boolean> {
    const done = await this.#enqueue(true, actor);
    void this.#options.gateway.filesChanged([...this.#served.runtime.reloadedFiles.keys()]);
    return done;
  }

  /** Stops watching and waits for a running reload. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch?.close();
    await this.#last;
  }

  #filesChanged(files: readonly string[]): void {
    const { path, log, variables } = this.#options;
    log.debug(SCOPE, 'files have changed', { files: files.slice(0, LIMITS.reloadNames).join(', ') });
    void this.#auditReread(this.#options.gateway.filesChanged(files));
    if (files.some((file) => file === variables?.path || this.#compiledFrom.includes(file)))
      void this.#enqueue(true, WATCH);
    else if (path !== undefined && files.includes(path)) void this.#enqueue(false, WATCH);
  }

  async #auditReread(reading: Promise<RereadProblem>): Promise<void> {
    const { runtime, source } = this.#served;
    const changed = this.#changed.of(rereadFiles(runtime));
    const problem = await reading;
    await auditReread(runtime, changed, problem, (text) => redactorOf(source, this.#env).text(text));
  }

  /** Requests while a reload is queued share that reload: many signals at once cause at most two reloads. */
  #enqueue(isForced: boolean, actor: Actor): Promise<boolean> {
    if (this.#waiting !== undefined) {
      // A signal or a program says more than that the file has changed.
      if (isForced && !this.#waiting.isForced) this.#waiting.actor = actor;
      this.#waiting.isForced ||= isForced;
      return this.#waiting.done;
    }
    const waiting = { isForced, actor, done: Promise.resolve(false) };
    waiting.done = this.#last
      .then(() => {
        this.#waiting = undefined;
        return this.#audited(waiting.actor, () => this.#load(waiting.isForced));
      })
      .catch((error: unknown) => {
        // A bug: the active configuration stays in effect.
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
        this.#failed([], `internal error: ${text}`);
        return false;
      });
    this.#waiting = waiting;
    this.#last = waiting.done;
    return waiting.done;
  }

  /** Says in the audit what has become of an attempt, if there was anything to load. */
  async #audited(actor: Actor, load: () => Promise<boolean>): Promise<boolean> {
    const { path, file } = this.#options;
    const before = hashOf(this.#served.source.text);
    this.#attempt = undefined;
    const done = await load().catch((error: unknown) => {
      this.#attempt = { outcome: 'failed', detail: messageOf(error) };
      throw error;
    });
    const attempt = this.#lastAttempt();
    if (attempt !== undefined)
      await auditOf
        .get(this.#served.runtime.settings)
        ?.record({ ...attempt, action: 'configuration.reload', actor, target: path ?? file, before });
    return done;
  }

  #lastAttempt() {
    return this.#attempt;
  }

  async #read(): Promise<string> {
    const { path, read } = this.#options;
    return path === undefined ? (read?.() ?? '') : readFile(path, 'utf8');
  }

  async #load(isForced: boolean): Promise<boolean> {
    if (this.#isClosed || this.#options.gateway.isClosing) return false;
    const started = performance.now();
    const { file, folder, variables } = this.#options;
    let text: string;
    try {
      if (isForced && variables !== undefined) this.#env = variables.read();
    } catch (error) {
      this.#failed([], messageOf(error));
      return false;
    }
    const env = this.#env;
    try {
      text = await this.#read();
    } catch (error) {
      if (this.#text !== undefined || isForced)
        this.#failed([], `${file} cannot be read: ${messageOf(error)}`);
      this.#text = undefined;
      return false;
    }
    // The file was touched or written without changes.
    if (text === this.#text && !isForced) {
      this.#options.log.debug(SCOPE, 'the file has not changed', { file });
      return this.state.isSynchronized;
    }
    this.#text = text;
    // An editor or script is probably still writing: a gateway without ports is not intended.
    if (text.trim() === '') {
      this.#failed([], `${file} is empty`);
      return false;
    }
    const loaded = loadConfigText(text, file, env);
    const { config, source, diagnostics } = loaded;
    if (config === undefined) {
      this.#failed(await findProblems(loaded, { folder, env }), '', source);
      return false;
    }
    // Validating and compiling block the event loop: requests are handled in between.
    await new Promise((resolve) => setImmediate(resolve));
    const done = await this.#serve({ config, source, diagnostics }, env, started);
    if (done) {
      const { reloads } = this.#state;
      this.#state = { servingSince: Date.now(), reloads: reloads + 1, failure: undefined };
      this.#options.gateway.metrics.isSynchronized = true;
      this.#attempt = {
        outcome: 'done',
        after: hashOf(text),
        detail: this.#changes,
      };
      await this.#watchFiles();
    }
    return done;
  }

  async #serve(
    { config, source, diagnostics }: Omit<CurrentConfig, 'runtime'>,
    env: Environment,
    started: number,
  ): Promise<boolean> {
    const { gateway, folder, log } = this.#options;
    const before = this.#served;
    const previous = before.runtime;
    const { runtime, diagnostics: more } = await buildRuntime({ config, source, log, folder, env, previous });
    const all = [...diagnostics, ...more];
    log.debug(SCOPE, 'read, checked and compiled', { ms: Math.round(performance.now() - started) });
    this.#compiledFrom = runtime.files;
    if (all.some(({ severity }) => severity === 'error')) {
      this.#compiledFrom = [...runtime.files, ...runtime.reloadedFiles.keys()];
      await runtime.components.close(previous.components);
      await this.#watchFiles();
      this.#failed(all, '', source);
      return false;
    }
    // If there is no port to open, the gateway switches in this event-loop turn, before the next request.
    try {
      await gateway.reload(runtime);
    } catch (error) {
      if (error instanceof PortError) this.#failed([...all, portDiagnostic(error, source)], '', source);
      // Other processes are involved, which may fail for other reasons.
      else this.#failed(all, error instanceof Error ? error.message : String(error), source);
      return false;
    }
    this.#served = { config: runtime.config, runtime, source, diagnostics: all };
    const restart = needRestart(runtime.config, config);
    const files = this.#changed.of(filesOf(runtime)).slice(0, LIMITS.reloadNames);
    const changes = {
      ...changesBetween(previous, runtime),
      variables: changedNames(previous.env, env),
      ...(files.length > 0 && { files: files.join(', ') }),
    };
    this.#changes = inWords({
      ...changes,
      ...(restart.length > 0 && { 'after a restart': restart.join(', ') }),
    });
    log.info(SCOPE, 'configuration reloaded', {
      file: this.#options.file,
      ...changes,
      ms: Math.round(performance.now() - started),
    });
    this.#warn(before, all, restart);
    return true;
  }

  #warn(before: CurrentConfig, all: readonly Diagnostic[], restart: readonly string[]): void {
    const { log } = this.#options;
    const known = new Set(before.diagnostics.map(({ message }) => message));
    const added = all.filter(({ message }) => !known.has(message));
    const redactor = redactorOf(this.#served.source, this.#env);
    for (const each of added.slice(0, LIMITS.reloadProblems))
      log.warn(SCOPE, redactor.text(renderConcise([each])));
    const fields = restart.join(', ');
    if (fields !== '' && fields !== this.#restartWarning)
      log.warn(SCOPE, 'some settings are read only at startup: restart to apply them', { settings: fields });
    this.#restartWarning = fields;
  }

  /** Logs why a reload failed. The active configuration is unchanged. */
  #failed(diagnostics: readonly Diagnostic[], problem: string, source?: YamlSource): void {
    const { log, gateway, variables } = this.#options;
    const redactor = redactorOf(source ?? this.#served.source, this.#env);
    const errors = diagnostics.filter(({ severity }) => severity === 'error');
    const texts = errors.map((each) => redactor.text(renderConcise([each])));
    const [first = problem, ...others] = texts;
    const more = others.slice(0, LIMITS.reloadProblems - 1);
    log.error(SCOPE, `Failed to reload config: ${first}`, {
      active: 'the previous configuration',
      problems: Math.max(1, errors.length),
      ...(errors.some(({ code }) => code === 'AGW0004') && {
        variables:
          variables === undefined
            ? 'are those of the environment at startup: restart the gateway after defining one'
            : `define it in ${basename(variables.path)}; those of the environment need a restart`,
      }),
      ...Object.fromEntries(more.map((text, index) => [`problem.${index + 2}`, text])),
    });
    this.#attempt = { outcome: 'failed', detail: first };
    // The redactor that is used when the state is shown knows only the secrets of the active configuration.
    const shown = errors.length > 0 ? redactor.value(diagnostics) : [this.#fileProblem(problem)];
    this.#state = { ...this.#state, failure: { at: Date.now(), diagnostics: shown } };
    gateway.metrics.isSynchronized = false;
  }

  #fileProblem(message: string): Diagnostic {
    const start = { line: 1, column: 1, offset: 0 };
    return {
      severity: 'error',
      code: 'AGW0005',
      message,
      file: this.#options.file,
      path: [],
      range: { start, end: start },
    };
  }

  async #watchFiles(): Promise<void> {
    const { reloadedFiles } = this.#served.runtime;
    const { path, variables } = this.#options;
    const own = [path, variables?.path].filter((each) => each !== undefined);
    await this.#watch?.set([...new Set([...own, ...this.#compiledFrom, ...reloadedFiles.keys()])]);
  }
}
