/** The admin REST interface of a Keycloak, as far as realms of tests need it. */
export class KeycloakAdmin {
  readonly url: string;
  readonly #password: string;
  #token = '';

  /** `url` is the origin; the bootstrap administrator is called `admin`. */
  constructor(url: string, password: string) {
    this.url = url;
    this.#password = password;
  }

  /** Makes a realm from its representation, in place of one of the same name. */
  async createRealm(realm: { readonly realm: string }): Promise<void> {
    await this.#send('DELETE', `/${realm.realm}`, undefined, [204, 404]);
    await this.#send('POST', '', realm);
  }

  updateRealm(realm: string, change: object): Promise<unknown> {
    return this.#send('PUT', `/${realm}`, change);
  }

  /**
   * Makes a client scope that every client has from now on, those that register themselves included, and that lets
   * this role into their tokens.
   */
  async addDefaultScope(realm: string, scope: { readonly name: string }, role: string): Promise<void> {
    await this.#send('POST', `/${realm}/client-scopes`, scope);
    const scopes = (await this.#send('GET', `/${realm}/client-scopes`)) as Component[];
    const made = scopes.find(({ name }) => name === scope.name);
    await this.#send('PUT', `/${realm}/default-default-client-scopes/${made?.id}`);
    const admitted = (await this.#send('GET', `/${realm}/roles/${role}`)) as object;
    await this.#send('POST', `/${realm}/client-scopes/${made?.id}/scope-mappings/realm`, [admitted]);
  }

  /** Changes the configuration of the client registration policy for strangers. */
  async setRegistrationPolicy(realm: string, providerId: string, config: object): Promise<void> {
    const type = 'org.keycloak.services.clientregistration.policy.ClientRegistrationPolicy';
    const policies = (await this.#send('GET', `/${realm}/components?type=${type}`)) as Component[];
    const policy = policies.find(
      (component) => component.providerId === providerId && component.subType === 'anonymous',
    );
    if (policy === undefined) throw new Error(`realm ${realm} has no registration policy ${providerId}`);
    await this.#send('PUT', `/${realm}/components/${policy.id}`, {
      ...policy,
      config: { ...policy.config, ...config },
    });
  }

  /** Makes the realm sign with a fresh RSA key of this name from now on. */
  async addSigningKey(realm: string, name: string, priority: number): Promise<void> {
    const { id } = (await this.#send('GET', `/${realm}`)) as { id: string };
    const config = { priority: [String(priority)], enabled: ['true'], active: ['true'], keySize: ['2048'] };
    await this.#send('POST', `/${realm}/components`, {
      name,
      parentId: id,
      providerId: 'rsa-generated',
      providerType: KEY_PROVIDER,
      config,
    });
  }

  async removeSigningKey(realm: string, name: string): Promise<void> {
    const keys = (await this.#send('GET', `/${realm}/components?type=${KEY_PROVIDER}`)) as Component[];
    const key = keys.find((component) => component.name === name);
    await this.#send('DELETE', `/${realm}/components/${key?.id}`);
  }

  /** Changes attributes of the one client whose name is this. */
  async setClientAttributes(realm: string, clientId: string, attributes: object): Promise<void> {
    const [client] = (await this.#send('GET', `/${realm}/clients?clientId=${clientId}`)) as Component[];
    if (client === undefined) throw new Error(`realm ${realm} has no client ${clientId}`);
    await this.#send('PUT', `/${realm}/clients/${client.id}`, {
      ...client,
      attributes: { ...client.attributes, ...attributes },
    });
  }

  async #send(method: string, path: string, body?: object, accepted?: readonly number[]): Promise<unknown> {
    const request = (): Promise<Response> =>
      fetch(`${this.url}/admin/realms${path}`, {
        method,
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    let response = await request();
    if (response.status === 401) {
      // Tokens of administrators are good for a minute.
      await this.#login();
      response = await request();
    }
    const text = await response.text();
    if (!(accepted?.includes(response.status) ?? response.ok))
      throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  async #login(): Promise<void> {
    const response = await fetch(`${this.url}/realms/master/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'password',
        client_id: 'admin-cli',
        username: 'admin',
        password: this.#password,
      }),
    });
    const { access_token: token } = (await response.json()) as { access_token?: string };
    if (token === undefined) throw new Error(`the administrator cannot sign in: ${response.status}`);
    this.#token = token;
  }
}

const KEY_PROVIDER = 'org.keycloak.keys.KeyProvider';

interface Component {
  readonly id: string;
  readonly name?: string;
  readonly providerId?: string;
  readonly subType?: string;
  readonly config?: object;
  readonly attributes?: object;
}
