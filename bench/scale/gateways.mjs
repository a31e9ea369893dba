// The gateways of `bench scale`: the same configuration with one process, and with workers.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { commandLine, cpuMicros, descendants } from '../harness/cpu.mjs';
import { OWN_PORTS } from '../harness/own-ports.mjs';
import { freePort, residentMiB, startGateway } from '../harness/processes.mjs';
import { CORES } from './cores.mjs';

/** A running gateway, with one process or with workers. */
export class ScaledGateway {
  #running;
  #admin;
  #watchers = new Set();

  /** Starts the gateway of a configuration without `config`. */
  static async start({ bin, folder, config, workers }) {
    const gateway = new ScaledGateway();
    const adminPort = await freePort();
    const file = join(folder, `${adminPort}.yaml`);
    const own = { ...OWN_PORTS, adminAddr: `127.0.0.1:${adminPort}`, workers };
    writeFileSync(file, JSON.stringify({ ...config, config: own }));
    gateway.#admin = `http://127.0.0.1:${adminPort}`;
    gateway.#running = await startGateway(bin, file, [], {
      core: CORES,
      onStderr: (text) => {
        for (const watch of gateway.#watchers) watch(text);
      },
    });
    return gateway;
  }

  get pid() {
    return this.#running.pid;
  }

  get origin() {
    return `http://127.0.0.1:${this.#running.port}`;
  }

  get port() {
    return this.#running.port;
  }

  /** Ids of the workers, in the order of their start. */
  get workerPids() {
    return descendants(this.pid).filter(isWorker);
  }

  /** CPU time in µs of the primary process and of the workers. Both end with their process. */
  cpu() {
    const workers = this.workerPids.reduce((sum, pid) => sum + cpuMicros(pid), 0);
    const primary = cpuMicros(this.pid);
    return { primary, all: primary + workers };
  }

  /** CPU time in µs of the servers that the gateway has started. */
  serversCpu() {
    const servers = descendants(this.pid).filter((pid) => !isWorker(pid));
    return servers.reduce((sum, pid) => sum + cpuMicros(pid), 0);
  }

  /** Resident memory in MiB of the primary process and of the workers; pages that they share count for each. */
  resident() {
    return [this.pid, ...this.workerPids].map(residentMiB);
  }

  /** Open descriptors of the primary process. */
  descriptors() {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  /** Open connections of each worker, by name of the worker. */
  async connections() {
    const { body } = await request(`${this.#admin}/memory`);
    const { bounds } = await body.json();
    const counts = {};
    for (const { name, at, used } of bounds)
      if (name === 'connections') counts[at.split(':')[0]] = (counts[at.split(':')[0]] ?? 0) + used;
    return counts;
  }

  /** Resolves to the first match in what is logged from now on; its `at` is when it was read (`performance.now()`). */
  logged(pattern, timeout = 30_000) {
    return new Promise((resolve, reject) => {
      let seen = '';
      const finish = (settle, value) => {
        clearTimeout(timer);
        this.#watchers.delete(watch);
        settle(value);
      };
      const timer = setTimeout(() => finish(reject, new Error(`the log does not have ${pattern}`)), timeout);
      const watch = (chunk) => {
        seen += chunk;
        const match = pattern.exec(seen);
        if (match !== null) finish(resolve, Object.assign(match, { at: performance.now() }));
      };
      this.#watchers.add(watch);
    });
  }

  stop() {
    return this.#running.stop();
  }
}

const isWorker = (pid) => / gateway worker$/.test(commandLine(pid));
