/** What there is to say about a server. */
export interface Said {
  /** What is not as the file has it. */
  readonly notes: string[];
  readonly risks: string[];
}

export const nothingSaid = (): Said => ({ notes: [], risks: [] });
