import { DAEMON_HOST } from './authz.ts';
import { chaos } from './config.ts';

/** The configuration of the specification for a mesh with an identity daemon, in YAML as a person writes it. */
export const meshConfig = (socket: string): string => `
frontendPolicies:
  accessLog:
    add:
      node: extauthz.node
      login: extauthz.login
gateways:
  default:
    port: 0
    protocol: HTTP
    routes:
    - name: application
      policies:
        cors:
          allowOrigins: ["*"]
          allowHeaders: ["*"]
          exposeHeaders: ["Mcp-Session-Id"]
        extAuthz:
          host: unix:${socket}
          protocol:
            http:
              path: '"/localapi/v0/whois?addr=" + source.address'
              addRequestHeaders:
                ":authority": '"${DAEMON_HOST}"'
          metadata:
            node: json(response.body).Node.Name
            login: json(response.body).UserProfile.LoginName
      backends:
      - mcp:
          targets:
          - name: tools
            stdio:
              cmd: ${JSON.stringify(chaos('tools').stdio.cmd)}
              args: ${JSON.stringify(chaos('tools').stdio.args)}
`;
