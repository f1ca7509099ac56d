/** `bloomery resident …`: the agent in the deployed system of a node (docs/kexec.md): how it is installed, and what is known of it. */
import type { Command } from 'commander';
import { isObject } from '../model/json';
import { isLoopback, isUuid } from '../model/idents';
import { printable } from '../model/log';
import { endpoint, get, post, remove } from './endpoint';
import { print, printJson, reported } from './output';

interface Arguments {
  readonly url?: string;
  readonly json?: boolean;
}
const pathOf = (node: string, more = ''): string => `nodes/${encodeURIComponent(node)}/resident_agent${more}`;
const textIn = (body: unknown, key: string): string | undefined => {
  const value = isObject(body) ? body[key] : undefined;
  return typeof value === 'string' ? value : undefined;
};

/** Commands for a shell on the host, as root. A quoted text cannot end: the parts have no quotes. */
const installation = (url: string, node: string, token: string): string => `mkdir -p /etc/bloomery
(umask 077; printf '%s\\n' '${token}' > /etc/bloomery/resident-token)
cat > /etc/systemd/system/bloomery-resident.service <<'END'
[Unit]
Description=Lets the bare metal service start its ramdisk on this host
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=/usr/local/bin/bloomery-agent resident --url ${url} --node ${node} --token-file /etc/bloomery/resident-token
Restart=always
RestartSec=30

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable bloomery-resident
systemctl restart bloomery-resident`;

const PLAIN_URL = /^https?:\/\/[\w.:[\]/-]+$/;
const install = (node: string, given: Arguments & { readonly service?: string }): Promise<void> =>
  reported(async () => {
    const service = given.service ?? endpoint(given.url, process.env);
    if (!PLAIN_URL.test(service)) throw new Error(`${service} is not the URL of a server`);
    if (isLoopback(new URL(service).hostname)) throw new Error(`the host cannot reach ${service}: use --service`);
    const uuid = await get(given.url, `nodes/${encodeURIComponent(node)}?fields=uuid`, (body) => {
      const found = textIn(body, 'uuid');
      return isUuid(found) ? found : undefined;
    });
    const token = await post(given.url, pathOf(uuid, '/token'), {}, (body) => {
      const made = textIn(body, 'token');
      return made !== undefined && /^[\w-]{20,100}$/.test(made) ? made : undefined;
    });
    if (given.json) printJson({ node: uuid, url: service, token });
    else print(installation(service, uuid, token));
  });
const show = (node: string, given: Arguments): Promise<void> =>
  reported(async () => {
    const agent = await get(given.url, pathOf(node), (body) => (isObject(body) && 'seen_at' in body ? body : undefined));
    if (given.json) {
      printJson(agent);
      return;
    }
    const { seen_at: seen, url, version, fingerprint } = agent;
    print(
      seen === null
        ? 'has a token, and has never registered'
        : [url, version, seen, fingerprint].map((text) => printable(String(text))).join('  '),
    );
  });
const revoke = (node: string, given: Arguments): Promise<void> =>
  reported(async () => {
    await remove(given.url, pathOf(node, '/token'));
    print(`${node}: the token is revoked`);
  });

export function addResidentCommands(program: Command): void {
  const resident = program.command('resident').description('Manage the agents in the deployed systems of nodes.');
  const add = (name: string, about: string): Command =>
    resident
      .command(name)
      .description(about)
      .argument('<node>', 'UUID or name of the node')
      .option('--url <url>', 'the server, as for bloomery why')
      .option('--json', 'print JSON');
  add('install', 'Make a token for the agent, and print the commands that install it on the host. They contain the token.')
    .option('--service <url>', 'the server as the host reaches it (default: as this command does)')
    .action(install);
  add('show', 'Show where the agent listens, its version, when it last registered, and its certificate.').action(show);
  add('revoke', 'Revoke the token of the agent, which is not asked any more.').action(revoke);
}
