/**
 * The real Ironic 39.0.0 (PyPI) as one process with SQLite and without authentication: the reference of our comparisons, and a server for
 * our agent.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../../../demo/lab/machines';
import { programs } from '../support/venv';

const run = promisify(execFile);

export interface RealIronic {
  readonly url: string;
  readonly pid: number;
  /** The path of its log. */
  readonly log: string;
  /** The folders with the files that its machines boot over HTTP and TFTP. */
  readonly httpRoot: string;
  readonly tftpRoot: string;
  stop(): Promise<void>;
}
export type Settings = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The values of its options `enabled_…`. */
export const ENABLED = {
  hardware_types: 'fake-hardware,ipmi,intel-ipmi,redfish,idrac,manual-management',
  bios_interfaces: 'no-bios,fake,redfish,idrac-redfish',
  boot_interfaces: 'fake,ipxe,pxe,http-ipxe,redfish-virtual-media,idrac-redfish-virtual-media',
  console_interfaces: 'no-console,fake',
  deploy_interfaces: 'fake,direct,ramdisk,custom-agent,noop',
  firmware_interfaces: 'no-firmware,fake,redfish',
  inspect_interfaces: 'no-inspect,fake,agent,redfish,idrac-redfish',
  management_interfaces: 'fake,ipmitool,intel-ipmitool,redfish,idrac-redfish,noop',
  network_interfaces: 'noop',
  power_interfaces: 'fake,ipmitool,redfish,idrac-redfish,agent',
  raid_interfaces: 'no-raid,fake,agent,redfish,idrac-redfish',
  rescue_interfaces: 'no-rescue,fake,agent',
  storage_interfaces: 'noop,fake',
  vendor_interfaces: 'no-vendor,fake,ipmitool,redfish,idrac-redfish',
} as const;

/**
 * @param folder of its own; an existing database in it is kept
 * @param settings over the usual ones, by section
 * @param namespace that it runs in, when one is given
 */
export async function startRealIronic(
  folder: string,
  address: string,
  port: number,
  settings: Settings = {},
  namespace?: string,
  programsFolder?: string,
): Promise<RealIronic> {
  const bin = programsFolder ?? (await programs('ironic', ['ironic==39.0.0']));
  const at = (name: string): string => join(folder, name);
  for (const name of ['state', 'http', 'tftp', 'images', 'masters', 'tftpmasters', 'lock']) mkdirSync(at(name), { recursive: true });
  const url = `http://${address}:${port}`;
  const usual: Settings = {
    DEFAULT: {
      auth_strategy: 'noauth',
      ...Object.fromEntries(Object.entries(ENABLED).map(([kind, names]) => [`enabled_${kind}`, names])),
      rpc_transport: 'none',
      state_path: at('state'),
      host: 'real-ironic',
      my_ip: address,
    },
    api: { host_ip: address, port: String(port), api_workers: '1' },
    database: { connection: `sqlite:///${at('ironic.sqlite')}` },
    deploy: { http_root: at('http') },
    pxe: { tftp_root: at('tftp'), images_path: at('images'), instance_master_path: at('masters'), tftp_master_path: at('tftpmasters') },
    dhcp: { dhcp_provider: 'none' },
    oslo_concurrency: { lock_path: at('lock') },
    service_catalog: { endpoint_override: url, auth_type: 'none' },
  };
  const sections = [...new Set([...Object.keys(usual), ...Object.keys(settings)])];
  const lines = sections.flatMap((section) => [
    `[${section}]`,
    ...Object.entries({ ...usual[section], ...settings[section] }).map(([name, value]) => `${name} = ${value}`),
  ]);
  writeFileSync(at('ironic.conf'), `${lines.join('\n')}\n`);
  if (!existsSync(at('ironic.sqlite')))
    await run(join(bin, 'ironic-dbsync'), ['--config-file', at('ironic.conf'), 'create_schema'], { timeout: 600_000 });

  const inside = namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace];
  const words = [...inside, join(bin, 'ironic'), '--config-file', at('ironic.conf')];
  const log = openSync(at('ironic.log'), 'a');
  // Ironic finds its tools (ipmitool's wrappers, image conversion) in this folder.
  // Python's requests would prefer these to the authorities that Ironic's options name.
  const { REQUESTS_CA_BUNDLE: _, CURL_CA_BUNDLE: __, ...inherited } = process.env;
  const env = { ...inherited, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  const child = spawn(words[0]!, words.slice(1), { stdio: ['ignore', log, log], env });
  const probe = [...inside, 'curl', '-fs', '-o', '/dev/null', `${url}/v1`];
  await until(
    600,
    () => `the real Ironic to answer\n${readFileSync(at('ironic.log'), 'utf8').slice(-3000)}`,
    async () => {
      if (child.exitCode !== null) throw new Error(`the real Ironic ended\n${readFileSync(at('ironic.log'), 'utf8').slice(-3000)}`);
      return run(probe[0]!, probe.slice(1)).then(
        () => true,
        () => false,
      );
    },
  );
  return {
    url,
    pid: child.pid!,
    log: at('ironic.log'),
    httpRoot: at('http'),
    tftpRoot: at('tftp'),
    stop: () => endReference(child),
  };
}

/** Ends a reference that was started; kills it after 20 s. Does nothing if it has ended. */
export async function endReference(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill();
  const killer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await ended;
  clearTimeout(killer);
}
