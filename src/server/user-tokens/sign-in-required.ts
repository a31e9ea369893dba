import { AppError } from '../../core/errors.ts';

/** Where a user has to sign in, for the text that the client shows. */
export interface SignInLink {
  /** Tells links apart; no secret. */
  readonly id: string;
  readonly url: string;
  /** To be entered on the page, if the page cannot know its user otherwise. */
  readonly code: string | undefined;
  /** Resolves when the user has signed in; never if that does not happen before the link expires. */
  readonly done: Promise<void>;
}

/**
 * The user has not signed in at the server, or has to do so again. Neither message nor detail has the link: logs have them, and
 * the link is for the user alone.
 */
export class SignInRequired extends AppError {
  readonly link: SignInLink;

  constructor(link: SignInLink, why: string) {
    super('bad_request', { message: why });
    this.link = link;
  }
}
