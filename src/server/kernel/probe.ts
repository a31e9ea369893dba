import type { Path } from '../../core/diagnostic.ts';
import type { CompileContext } from './compile-context.ts';

/** Something outside of the gateway that a backend needs, for `agctl check` to try. */
export type Probe = CommandProbe | AddressProbe | ModelsProbe | UncheckedProbe;

/** An MCP target. */
interface TargetProbe {
  /** Its pins; undefined if its backend pins no tools. Throws `Error` if their file cannot be read. */
  pins(context: CompileContext): TargetPins | undefined;
  /** Whether clients of its backend search for tools instead of listing them. */
  readonly isSearched: boolean;
  /** Names and patterns of tools in the settings of its backend. */
  readonly toolNames: readonly ToolName[];
  /** Lists its tools, and starts it for that if it is a command. Rejects with the error that clients and the log would get. */
  tools(context: CompileContext): Promise<ListedTools>;
  /** Definitions of the tools that clients may see, as the server lists them. Rejects with the error that clients and the log would get. */
  definitions(context: CompileContext): Promise<readonly DefinedTool[]>;
  /** Lists its tools as clients see them. Rejects with the error that clients and the log would get. */
  measureTools(context: CompileContext): Promise<readonly MeasuredTool[]>;
}

/** A tool by its name at the server, and its definition as JSON text. */
export interface DefinedTool {
  readonly own: string;
  readonly text: string;
}

/** The size of the definition of a tool as clients see it. */
export interface MeasuredTool {
  readonly name: string;
  /** Of the definition as JSON. */
  readonly bytes: number;
  /** Its longest member. */
  readonly longest: { readonly member: string; readonly bytes: number };
}

/** The pins of one MCP target, before the gateway has pinned its tools. */
export interface TargetPins {
  /** The file, which may not exist. */
  readonly path: string;
  /** Number of tools that it has of a target of this name. */
  readonly known: number;
  /** Connects to the server once. Rejects with the error that clients and the log would get. */
  list(): Promise<{
    readonly names: readonly string[];
    /** Writes the pins as the gateway would. Throws `Error` if that fails. */
    write(): void;
  }>;
}

/** A command that is started for an MCP target. */
export interface CommandProbe extends TargetProbe {
  readonly kind: 'command';
  readonly name: string;
  readonly command: string;
  /** `folder`: that of the configuration file. */
  locate(env: Environment, folder: string): LocatedCommand;
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface LocatedCommand {
  readonly workingFolder: string;
  readonly hasWorkingFolder: boolean;
  /** Path of the command; undefined if it was not found. */
  readonly path: string | undefined;
}

/** A name or pattern of tools, as clients see their names. */
export interface ToolName {
  /** With the setting, such as `toolSearch.pinned: files_*`. */
  readonly shown: string;
  matches(target: string, tool: string): boolean;
}

export interface ListedTools {
  /** Names as the server lists them. */
  readonly listed: readonly string[];
  /** Names as clients see them. */
  readonly shown: readonly string[];
  /** Names in the settings that match no tool. */
  readonly unmatched: readonly string[];
}

/** A server of an MCP target that must accept connections. */
export interface AddressProbe extends TargetProbe {
  readonly kind: 'address';
  readonly name: string;
  readonly host: string;
  /** Whether users sign in at the server, so that it may answer nothing to a check, which has no user. */
  readonly signsIn: boolean;
  /** Undefined if it is not a URL. */
  readonly destination:
    | {
        /** As displayed. */
        readonly shown: string;
        readonly socket: { readonly path: string } | { readonly host: string; readonly port: number };
      }
    | undefined;
}

/** An LLM endpoint that lists its models. */
export interface ModelsProbe {
  readonly kind: 'models';
  /** Name in the configuration of a model that it serves. */
  readonly name: string;
  /** Kind of provider. */
  readonly provider: string;
  /** URL before `/models`. */
  readonly url: URL;
  /** Whether the configuration sets the URL; otherwise the provider's default applies. */
  readonly isConfigured: boolean;
  readonly key: string | undefined;
  /** Path of the key in the settings of the backend. */
  readonly keyPath: Path;
  /** Whether the provider gets another credential than `key`. */
  readonly hasCredential: boolean;
  /** Names and values of all headers that the gateway sends to every call, with the key. */
  readonly headers: readonly string[];
  /** Names of the settings for people. */
  readonly settings: { readonly url: string; readonly key: string };
}

/** An LLM endpoint that cannot be asked for its models. */
export interface UncheckedProbe {
  readonly kind: 'models';
  readonly url: undefined;
  /** Name in the configuration of a model that it serves. */
  readonly name: string;
  /** Kind of provider. */
  readonly provider: string;
  /** For people. */
  readonly reason: string;
}
