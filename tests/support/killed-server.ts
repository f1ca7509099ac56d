/** The built server in processes that a test kills, with simulated machines that boot from it. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startFleet, type Fleet, type FleetMachine } from '../../simulator/fleet/fleet';
import { timeoutSignal } from '../../wire/timeout-signal';
import { useDatabase } from './database';
import { freePort } from './free-port';
import { openProcesses } from './processes';
import { requestText } from './request';

export type Body = Readonly<Record<string, unknown>>;
type Sections = Readonly<Record<string, Readonly<Record<string, string | number>>>>;

interface Setup {
  readonly machines: number;
  /** Host → its roles. They start in this order. */
  readonly hosts: Readonly<Record<string, string>>;
  /** Options besides those that all have, by section. @param folder of the test */
  readonly options: (folder: string) => Sections;
  /** What is special about the machines. */
  readonly fleet?: Partial<Parameters<typeof startFleet>[0]>;
}

/** Called once in a file: it registers what runs before and after the tests. */
export function useKilledServer({ machines, hosts, options, fleet: special }: Setup) {
  const database = useDatabase();
  const processes = openProcesses(() => database.connection());
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-killed-'));
  let fleet: Fleet | undefined;
  let [port, boot] = [0, 0];

  function settingsOf(host: string): string {
    const common: Sections = {
      DEFAULT: {
        host,
        my_ip: '127.0.0.1',
        enabled_boot_interfaces: 'ipxe',
        enabled_deploy_interfaces: 'direct',
        enabled_network_interfaces: 'noop',
      },
      api: { host_ip: '127.0.0.1', port },
      boot: { http_host: '127.0.0.1', http_port: boot, tftp: 'false' },
      conductor: {
        heartbeat_interval: 1,
        check_provision_state_interval: 1,
        deploy_kernel: `file://${folder}/kernel`,
        deploy_ramdisk: `file://${folder}/ramdisk`,
      },
      deploy: { http_url: `http://127.0.0.1:${boot}` },
      service_catalog: { endpoint_override: `http://127.0.0.1:${port}` },
    };
    const more = options(folder);
    return [...new Set([...Object.keys(common), ...Object.keys(more)])]
      .flatMap((section) => [
        `[${section}]`,
        ...Object.entries({ ...common[section], ...more[section] }).map(([name, value]) => `${name} = ${value}`),
      ])
      .join('\n');
  }
  async function start(host: string): Promise<void> {
    const said = await processes.start(host, hosts[host]!, settingsOf(host));
    if (typeof said !== 'string') throw new Error(said.errors);
  }
  /** Throws for an answer that is an error. */
  async function call(method: string, path: string, body?: unknown): Promise<Body> {
    const { status, text } = await requestText(`http://127.0.0.1:${port}${path}`, method, {
      headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: timeoutSignal(60_000),
    });
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return text === '' ? {} : (JSON.parse(text) as Body);
  }
  /** A node for this machine, with its ports, in enroll. @returns its UUID */
  async function enrol(machine: FleetMachine, more: object = {}): Promise<string> {
    const { address, systemId, username, password } = machine.redfish;
    const { uuid } = await call('POST', '/v1/nodes', {
      name: machine.name,
      driver: 'redfish',
      driver_info: { redfish_address: address, redfish_system_id: systemId, redfish_username: username, redfish_password: password },
      ...more,
    });
    for (const mac of machine.macs) await call('POST', '/v1/ports', { node_uuid: uuid, address: mac });
    return String(uuid);
  }

  beforeAll(async () => {
    [port, boot] = [await freePort(), await freePort()];
    for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(1000));
    for (const host of Object.keys(hosts)) await start(host);
    fleet = await startFleet({
      count: machines,
      bootUrl: `http://127.0.0.1:${boot}`,
      host: '127.0.0.1',
      log: silentLog,
      clock: systemClock,
      random: randomBytes,
      behaviour: { firmwareMs: 10, bootMs: 20, retryMs: 50, softOffMs: 10 },
      ...special,
    });
  }, 240_000);
  afterAll(async () => {
    await fleet?.close();
    await processes.close();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  return {
    database,
    folder,
    start,
    kill: (host: string): Promise<void> => processes.end(host, 'SIGKILL'),
    call,
    enrol,
    machine: (index: number): FleetMachine => fleet!.machines[index]!,
  };
}
