/** What a stage of the request flow tells whoever is watching. Building an event costs nothing when nobody is. */
export type TraceEvent = PolicyEvent;

/** A policy was considered for a request. */
export interface PolicyEvent {
  readonly type: 'policy';
  /** Key of the policy, as in the configuration. */
  readonly kind: string;
  /** `apply`: it acted and the request goes on; `skip`: it had nothing to do; `deny`, `respond`: it ended the request. */
  readonly action: 'apply' | 'skip' | 'deny' | 'respond';
  /** Why, in words: the rule that decided, the header that was missing. */
  readonly reason: string;
  /** Values that the decision rests on. Never holds credentials. */
  readonly snapshot?: Readonly<Record<string, unknown>>;
}

export type TraceSink = (event: TraceEvent) => void;
