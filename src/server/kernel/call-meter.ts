/** Kind of an outgoing call: to the backend, or made by a policy. */
export type CallKind = 'Primary' | 'Policy';

/** Records metrics of the calls to one upstream. Created when the configuration is compiled. */
export interface CallMeter {
  readonly kind: CallKind;
  /** Type of the called service, such as `Http` or `ExtAuthz`. A metric label with a fixed set of values. */
  readonly subtype: string;
  /** A connection was opened; it took `duration` ms. */
  connected(transport: 'plaintext' | 'tls', duration: number): void;
  /** The response headers arrived `duration` ms after the call started. */
  answered(duration: number): void;
}
