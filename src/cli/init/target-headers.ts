type Entry = Readonly<Record<string, unknown>>;

/** A header for a remote server, with its value as a configuration has it. */
export interface TargetHeader {
  readonly name: string;
  readonly value: string;
}

/** Headers that the gateway sets itself. */
export const isOwnHeader = (name: string): boolean =>
  /^(?:accept|content-type|user-agent|mcp-(?:session-id|protocol-version))$/i.test(name);

/** The policies with which a target sends headers; undefined without any. Values with references are credentials. */
export function headerPolicies(headers: readonly TargetHeader[]): Entry | undefined {
  const found = headers.map((header) => ({ ...header, token: bearerToken(header) }));
  const key = found.find(({ token }) => token !== undefined)?.token;
  const others = found.filter(({ token }) => token === undefined);
  const credentials = others.filter(hasReference).map(({ name, value }) => ({
    key: value,
    location: { header: { name } },
  }));
  const fixed = Object.fromEntries<string>(
    others.filter((header) => !hasReference(header)).map(({ name, value }) => [name, value]),
  );
  const backendAuth = {
    ...(key !== undefined && { key }),
    ...(credentials.length > 0 && { credentials }),
  };
  const policies = {
    ...(Object.keys(backendAuth).length > 0 && { backendAuth }),
    ...(Object.keys(fixed).length > 0 && { requestHeaderModifier: { set: fixed } }),
  };
  return Object.keys(policies).length > 0 ? policies : undefined;
}

function bearerToken({ name, value }: TargetHeader): string | undefined {
  return /^authorization$/i.test(name) ? /^Bearer\s+(\S+)$/i.exec(value)?.[1] : undefined;
}

/** Whether a value refers to a variable; `$$` is a dollar sign. */
const hasReference = ({ value }: TargetHeader): boolean =>
  /\$(?:\{|[A-Za-z_])/.test(value.replaceAll('$$', ''));
