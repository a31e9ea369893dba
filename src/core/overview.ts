/** The response of `/api/overview`, which the pages of the admin UI display. Contains no secrets. */
export interface Overview {
  readonly version: string;
  /** The name of the machine or container: behind a load balancer, any of several replicas may answer. */
  readonly machine: string;
  readonly pid: number;
  readonly node: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly uptimeSeconds: number;
  /** Path of the configuration file. */
  readonly config: string;
  /** Absolute path of that file, links resolved: the same name may be in several folders. Absent for standard input. */
  readonly configPath?: string;
  readonly openRequests: number;
  /** Whether requests are recorded in a database, so that `/api/usage` has their history. */
  readonly isRecording: boolean;
  readonly logLevel: string;
  /** Problems of the configuration, in the form of `/api/config/validate`. */
  readonly problems: ProblemsView;
  /** Whether the active configuration is the latest version of the file, and if not, why. */
  readonly reload?: ReloadView;
  /** The database and the shared store, while they do not answer. */
  readonly outages: readonly OutageView[];
  readonly gateways: readonly GatewayView[];
  /** Certificates of listeners, and those of clients for upstreams; the first to expire first. */
  readonly certificates: readonly CertificateView[];
  /** Ports that this process has open for metrics and readiness. */
  readonly signalPorts: readonly number[];
}

/** A service of the gateway itself that does not answer. */
export interface OutageView {
  /** Where it is configured. */
  readonly at: 'config.database' | 'config.shared';
  readonly problem: string;
  /** RFC 3339. */
  readonly since: string;
}

export interface CertificateView {
  /** As in the configuration. */
  readonly file: string;
  /** RFC 3339. */
  readonly expires: string;
  /** Whether the file could be read when it last changed: otherwise the certificate before it is in use. */
  readonly isCurrent: boolean;
}

/** A report of problems for programs, without the text form. */
export interface ProblemsView {
  readonly errorCount: number;
  readonly warningCount: number;
  /** In source order. */
  readonly diagnostics: readonly ProblemView[];
}

export interface ProblemView {
  readonly severity: 'error' | 'warning' | 'note';
  readonly code: string;
  readonly message: string;
  readonly range: {
    readonly file: string;
    readonly start: { readonly line: number; readonly column: number };
  };
  readonly help?: string;
}

export interface ReloadView {
  readonly watching: boolean;
  readonly synchronized: boolean;
  /** Successful reloads since the start. */
  readonly count: number;
  /** When this configuration became active, RFC 3339. */
  readonly servingSince: string;
  /** `at`: RFC 3339. */
  readonly failure?: ProblemsView & { readonly at: string };
}

export interface GatewayView {
  readonly key: string;
  readonly name: string;
  readonly port: number;
  /** Where clients of this machine reach it: `https://127.0.0.1:8443`. */
  readonly url: string;
  readonly routes: readonly RouteView[];
}

export interface RouteView {
  readonly key: string;
  /** As printed in the access log; a route without a name has its key there. */
  readonly name: string;
  /** As the configuration calls it: its name, the section that it stands for, or else what it matches. */
  readonly title: string;
  /** As printed in the access log. The same route may be served by several. */
  readonly listener: string;
  readonly hostnames: readonly string[];
  /** Where clients of this machine reach it, with its host name if it has one. */
  readonly origin: string;
  readonly matches: readonly string[];
  /** In the order of evaluation. */
  readonly policies: readonly string[];
  readonly line: number;
  /** Of the route and its backends; empty if callers of the route may use all tools. */
  readonly toolRules: readonly ToolRuleView[];
  readonly backends: readonly BackendView[];
}

export interface BackendView {
  /** Its key in `backends[]`. */
  readonly kind: string;
  /** What clients speak. */
  readonly api: 'mcp' | 'llm' | 'http';
  readonly weight: number;
  readonly address?: string;
  readonly sessions?: number;
  readonly targets?: readonly TargetView[];
  readonly models?: readonly ModelView[];
  /** Names and patterns of the models that clients may request. */
  readonly modelNames?: readonly string[];
}

/** An MCP server behind a backend. */
export interface TargetView {
  readonly name: string;
  readonly state: 'idle' | 'connecting' | 'ready' | 'failing';
  readonly kind: 'stdio' | 'http';
  /** The command or host of the target. */
  readonly at: string;
  readonly connections: number;
  /** Why the target is not available, if it is not. */
  readonly problem?: string;
  /** The website that the server reports for itself; http or https. */
  readonly website?: string;
  /** Number of tools in its latest list, if one was read. */
  readonly tools?: number;
  /** Names of the tools in its latest list, in any session, as the target has them. */
  readonly toolNames?: readonly string[] | undefined;
  /** With `toolPinning`: how many tools are pinned, and the names at the target of those that have changed since. */
  readonly pins?: {
    readonly isEnforced: boolean;
    readonly pinned: number;
    readonly changed: readonly string[];
  };
}

/** A rule of `mcpAuthorization`, which decides who may list and use a tool. */
export interface ToolRuleView {
  readonly effect: 'allow' | 'deny' | 'require';
  /** CEL. */
  readonly expression: string;
}

export interface ModelView {
  readonly name: string;
  /** As the configuration calls it. */
  readonly provider: string;
  /** Its name in the access log and the record: `openai` for `oaiCompat`. */
  readonly loggedProvider: string;
  readonly address?: string;
  readonly requests: number;
  readonly pending: number;
  readonly failures: number;
  /** Milliseconds, on average. */
  readonly latency: number;
}

/** A bounded buffer, queue, cache or count, as listed by `/memory`. */
export interface ShownBound {
  readonly name: string;
  /** Identifies one of several; `each …` if every request, message or stream has its own. */
  readonly at?: string;
  /** Absent if it is not counted. */
  readonly used?: number;
  readonly max: number;
  /** Items dropped at the bound. */
  readonly dropped?: number;
  /** `Bound.keepsLatest`. */
  readonly keepsLatest?: true;
}
