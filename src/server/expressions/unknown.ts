import { CelEvaluationError } from './cel/errors.ts';

/** What is not known without a request, for `possibleDecision` and `possibleOutcomes`: expressions that read it fail. */
export class Unknown {
  #wasAsked = false;

  /** Throws `CelEvaluationError`. */
  ask(what: string): never {
    this.#wasAsked = true;
    throw new CelEvaluationError('failed', `${what} is not known without a request`);
  }

  /** Whether something was asked for since the last call. */
  wasAsked(): boolean {
    const was = this.#wasAsked;
    this.#wasAsked = false;
    return was;
  }
}
