import type { AppError } from '../../../core/errors.ts';
import type {
  Direction,
  HeaderMutation,
  ImmediateAnswer,
  ModeOverride,
} from '../envoy/external-processor.ts';
import type { BodyOutput, BodySource, OutputControl } from './bodies.ts';
import type { BodyMode } from './modes.ts';

/** What becomes of a request or response: an answer of the service, or the message with this body (undefined: its own). */
export type SideOutcome<Body> =
  | { readonly immediate: ImmediateAnswer }
  | { readonly body: Body | Buffer | undefined };

export interface SideOptions<Body> {
  readonly direction: Direction;
  readonly sendsHeaders: boolean;
  readonly bodyMode: BodyMode;
  /** Bytes of a body that are buffered. */
  readonly limit: number;
  /** How long the service may take for an answer, in ms. */
  readonly timeout: number;
  /** Whether the message is passed on as it was if the service fails. */
  readonly isOpen: boolean;
  /** `metadata_context` and so on, for the first message. */
  readonly context: object;
  /** `HeaderMap`. */
  headers(): object;
  /** Undefined: the message has no body. */
  readonly source: (() => BodySource) | undefined;
  output(control: OutputControl): BodyOutput<Body>;
  changeHeaders(mutation: HeaderMutation): void;
  /** Returns the mode of the body from now on. */
  override(modes: ModeOverride): BodyMode;
  /** Called if the service ends a message of which a part was passed on already. */
  late(outcome: { readonly immediate: ImmediateAnswer } | { readonly error: AppError }): void;
  /** The error for a body that is larger than `limit`. */
  tooLarge(): AppError;
  /** The error for a body whose sender ends it early. */
  cutOff(why: string, isTimeout: boolean): AppError;
}
