/** Kinds of calls that the gateway makes: the call to the backend, or one that a policy makes. */
export type CallKind = 'Primary' | 'Policy';

/** Counts the calls to one upstream. Made when the configuration is compiled. */
export interface CallMeter {
  readonly kind: CallKind;
  /** What is called, such as `Http` or `ExtAuthz`; a label of metrics, so its values are few and fixed. */
  readonly subtype: string;
  /** A connection was opened, in ms. */
  connected(transport: 'plaintext' | 'tls', duration: number): void;
  /** The head of a response arrived, in ms after the call. */
  answered(duration: number): void;
}
