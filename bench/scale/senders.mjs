// Clients in this process, which count what they get: for faults and limits, where a failed request is a result.
import { Agent, get } from 'node:http';

/** `count` clients, each with one connection at a time, that send requests one after the other. */
export class Senders {
  /** Number of responses by status, and of failed requests by error code. */
  outcomes = {};
  #agents;
  #url;
  #left;
  #isOver = false;
  #ended;

  /** Sends `total` requests altogether; without it, until `stop` is called. */
  constructor(url, count, total = Number.POSITIVE_INFINITY) {
    this.#url = url;
    this.#left = total;
    this.#agents = Array.from({ length: count }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    this.#ended = Promise.all(this.#agents.map((agent) => this.#run(agent)));
  }

  /** Number of requests without a response. */
  get failed() {
    return this.#sum(([outcome]) => Number.isNaN(Number(outcome)));
  }

  /** Number of requests that are over. */
  get finished() {
    return this.#sum(() => true);
  }

  /** Resolves when all requests are over. */
  get ended() {
    return this.#ended;
  }

  async stop() {
    this.#isOver = true;
    await this.#ended;
    for (const agent of this.#agents) agent.destroy();
  }

  #sum(filter) {
    return Object.entries(this.outcomes)
      .filter(filter)
      .reduce((sum, [, count]) => sum + count, 0);
  }

  async #run(agent) {
    while (!this.#isOver && this.#left > 0) {
      this.#left -= 1;
      const outcome = await this.#one(agent);
      this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
    }
  }

  #one(agent) {
    return new Promise((resolve) => {
      const failed = (error) => resolve(error.code ?? error.message);
      get(this.#url, { agent }, (response) => {
        response.resume();
        response.on('end', () => resolve(String(response.statusCode))).on('error', failed);
      }).on('error', failed);
    });
  }
}
