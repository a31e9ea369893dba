/** What became of the calls of an MCP target, a provider or a model; `model` has failovers only. */
export type ServiceKind = 'target' | 'provider' | 'model';

/** Calls of one minute, hour or day. */
export interface ServiceBucket {
  /** Its start, in ms since 1970. */
  readonly at: number;
  /** By the provider that was asked last, as in the log and the record: attempts of failover before are in `failovers` of their model. */
  readonly calls: number;
  readonly errors: number;
  /** Calls that another model was asked for after this one had failed. */
  readonly failovers: number;
  /** ms, to within 12 %; null without calls. */
  readonly p95: number | null;
}

export interface ServiceFigures extends Omit<ServiceBucket, 'at'> {
  readonly kind: ServiceKind;
  readonly name: string;
  /** Those with calls, oldest first. */
  readonly buckets: readonly ServiceBucket[];
}

/** The response of `/api/services`. */
export interface ShownServices {
  /** Since when calls are counted, in ms since 1970. */
  readonly since: number;
  readonly services: readonly ServiceFigures[];
}
