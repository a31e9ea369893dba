import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { messageOf } from '../../../../core/errors.ts';
import { LIMITS, type Limits } from '../../../../core/limits.ts';
import type { Log } from '../../../../core/log.ts';
import { fileVersion } from '../../../kernel/files/file-version.ts';
import { createUpstream } from '../../../transport/upstream/upstream.ts';
import { explainUpstreamError } from '../../../transport/upstream/upstream-error.ts';
import { TargetFailure } from '../../connection/target-failure.ts';
import { chunksOf } from '../http/http-body.ts';
import type { Api } from './channel.ts';
import { DocumentError } from './document.ts';

/** What a document says about an API. */
export type Description = Pick<Api, 'serverInfo' | 'tools'>;

/** Where the description of an API comes from. Sessions keep the one that they started with. */
export interface DescriptionSource {
  /** The description for a new session, or a new list of its tools. Rejects with `TargetFailure` while there is none. */
  current(): Promise<Description>;
}

/** Reads the text of a document. Throws `DocumentError` if it is too large, and the error of the system. */
export function readDocumentFile(file: string): string {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw new DocumentError(`${file} is not a regular file`);
    if (found.size > LIMITS.openApiDocumentBytes)
      throw new DocumentError(`${file} is larger than ${LIMITS.openApiDocumentBytes} bytes`);
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/** A file that is read again after it has changed. If that fails, the earlier description stays in use. */
export class FileSource implements DescriptionSource {
  readonly #file: string;
  readonly #read: () => Description;
  readonly #warn: (problem: string) => void;
  #description: Description;
  #version: string;

  /** `read` reads and parses the file; it is called once here, and its error is thrown. */
  constructor(file: string, read: () => Description, warn: (problem: string) => void) {
    this.#file = file;
    this.#read = read;
    this.#warn = warn;
    this.#version = fileVersion(file);
    this.#description = read();
  }

  current(): Promise<Description> {
    const version = fileVersion(this.#file);
    if (version !== this.#version) {
      this.#version = version;
      try {
        this.#description = this.#read();
      } catch (error) {
        this.#warn(messageOf(error));
      }
    }
    return Promise.resolve(this.#description);
  }
}

/**
 * A document that is fetched for the first session, and again in the background for a session that starts more than
 * `LIMITS.openApiLifetime` later. Redirects are not followed.
 */
export class UrlSource implements DescriptionSource {
  readonly #url: URL;
  readonly #read: (text: string) => Description;
  readonly #log: Log;
  readonly #limits: Limits;
  #description: Description | undefined;
  #fetchedAt = 0;
  #fetching: Promise<Description> | undefined;

  constructor(url: URL, read: (text: string) => Description, log: Log, limits: Limits) {
    this.#url = url;
    this.#read = read;
    this.#log = log;
    this.#limits = limits;
  }

  async current(): Promise<Description> {
    const description = this.#description;
    if (description === undefined) return this.#fetch();
    if (performance.now() - this.#fetchedAt > this.#limits.openApiLifetime)
      this.#fetch().catch((error: unknown) =>
        this.#log.warn(
          'mcp::openapi',
          'the document of a target could not be fetched again; the earlier one is used',
          {
            url: this.#shown,
            problem: messageOf(error),
          },
        ),
      );
    return description;
  }

  get #shown(): string {
    return this.#url.origin + this.#url.pathname;
  }

  /** Concurrent callers share one request. */
  #fetch(): Promise<Description> {
    this.#fetching ??= this.#load().finally(() => {
      this.#fetching = undefined;
      this.#fetchedAt = performance.now();
    });
    return this.#fetching;
  }

  async #load(): Promise<Description> {
    try {
      this.#description = this.#read(await fetchText(this.#url));
      return this.#description;
    } catch (error) {
      const problem = `its OpenAPI document is not available: ${messageOf(error)}`;
      throw new TargetFailure(problem, `${this.#shown}: ${problem}`);
    }
  }
}

async function fetchText({ origin, pathname, search }: URL): Promise<string> {
  const upstream = createUpstream({ origin });
  const signal = AbortSignal.timeout(LIMITS.openApiFetchTimeout);
  try {
    const { statusCode, body } = await upstream.request({
      method: 'GET',
      path: pathname + search,
      headers: ['accept', 'application/json, application/yaml;q=0.9, */*;q=0.1'],
      signal,
    });
    if (statusCode !== 200)
      throw new DocumentError(
        `the server answered HTTP ${statusCode}${isRedirect(statusCode) ? '; redirects are not followed' : ''}`,
      );
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of chunksOf(body)) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > LIMITS.openApiDocumentBytes)
        throw new DocumentError(`it is larger than ${LIMITS.openApiDocumentBytes} bytes`);
    }
    return Buffer.concat(chunks, size).toString('utf8');
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    if (signal.aborted) throw new Error(`no answer within ${LIMITS.openApiFetchTimeout / 1000} s`);
    throw new Error(explainUpstreamError(error));
  } finally {
    await upstream.close();
  }
}

const isRedirect = (status: number): boolean => status >= 300 && status <= 399;
