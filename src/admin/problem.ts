/** An error as it is sent. */
interface SentProblem {
  readonly type: string;
  readonly text: string;
}

/** Whether the target of a request is one of programs, which read JSON. */
const isOfApi = (target: string): boolean => /^\/api(?:[/?]|$)/.test(target);

/** An error for the target of a request: JSON below `/api`, and one line of text at the other paths, which are those of upstream. */
export const problemAt = (target: string, message: string): SentProblem =>
  isOfApi(target)
    ? { type: 'application/json', text: JSON.stringify({ error: { message } }, null, 2) }
    : { type: 'text/plain; charset=utf-8', text: `${message}\n` };
