/** npm run demo: takes three simulated machines from enroll to active through a server of its own. */
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '../model/clock';
import { silentLog } from '../model/log';
import { nodeOf, protocolOf } from '../simulator/fleet/describe-node';
import { startFleet } from '../simulator/fleet/fleet';
import { startServerProcess, type Sections } from './lab/server';
import { openClient } from './client';
import { openDisplay } from './progress';
import { booted } from './qemu';
import { walk, type DemoImage, type DemoMachine } from './walk';

/** The folder of this run, since another demo may run at the same time. Empty with --qemu. */
let folder = '';
/** Limit of the whole demonstration, far more than an idle host needs. */
const WITHIN_SECONDS = 300;
/** How many machines go from enroll to active, and how many more the page offers to add. */
const [WALKED, OFFERED] = [3, 5];

/** How the user started the demonstration, for messages. `bloomery demo` sets the variable. */
const COMMAND = process.env['BLOOMERY_DEMO_COMMAND'] ?? 'npm run demo --';
const USAGE = `${COMMAND} [OPTIONS]: three simulated machines from enroll to active

  --keep      leave the server and the machines running until Ctrl-C
  --port N    port of the API and of the page (default: 6385 if it is free, else any)
  --qemu      one machine that really boots, in QEMU (root, Debian; see docs/install.md)
  --help      this text`;

/** Whether this TCP port of 127.0.0.1 is free. */
const free = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const probe = createServer();
    probe.once('error', () => done(false)).listen(port, '127.0.0.1', () => probe.close(() => done(true)));
  });

/** Writes an image of 8 MiB; simulated machines only verify its checksum, so its bytes are random. @returns its SHA-256 */
function makeImage(path: string): string {
  const bytes = randomBytes(8 << 20);
  writeFileSync(path, bytes);
  return createHash('sha256').update(bytes).digest('hex');
}

/** The URL of a service in the server's ready line. */
const urlIn = (ready: string, name: 'API' | 'boot'): string => new RegExp(`${name} (\\S+?),`).exec(ready)![1]!;

const sections = (apiPort: number): Sections => ({
  DEFAULT: {
    my_ip: '127.0.0.1',
    enabled_hardware_types: 'ipmi,redfish',
    enabled_boot_interfaces: 'ipxe',
    enabled_deploy_interfaces: 'direct',
    enabled_inspect_interfaces: 'agent',
    enabled_network_interfaces: 'noop',
  },
  api: { host_ip: '127.0.0.1', port: apiPort, demo_machines: `${folder}/machines.json` },
  conductor: {
    deploy_kernel: `file://${folder}/state/httpboot/kernel`,
    deploy_ramdisk: `file://${folder}/state/httpboot/ramdisk`,
  },
  boot: { http_host: '127.0.0.1', http_port: 0, tftp: 'false' },
});

/**
 * @param stopped resolves at SIGINT, SIGTERM or SIGHUP
 * @returns whether the machines became active before that
 */
async function simulated(keep: boolean, port: number | undefined, stopped: Promise<void>): Promise<boolean> {
  const started = Date.now();
  folder = mkdtempSync(join(tmpdir(), 'bloomery-demo-'));
  // The embedded database may run as another user, who must be able to enter the folder.
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, 'state/httpboot'), { recursive: true });
  const sha256 = makeImage(join(folder, 'state/httpboot/demo.img'));
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, 'state/httpboot', name), randomBytes(64 << 10));
  const server = await startServerProcess(folder, sections(port ?? ((await free(6385)) ? 6385 : 0)));
  let fleet: Awaited<ReturnType<typeof startFleet>> | undefined;
  let isComplete = false;
  try {
    console.log(server.ready);
    const [api, boot] = [urlIn(server.ready, 'API'), urlIn(server.ready, 'boot')];
    fleet = await startFleet({
      count: WALKED + (keep ? OFFERED : 0),
      bootUrl: boot,
      host: '127.0.0.1',
      log: silentLog,
      clock: systemClock,
      random: randomBytes,
    });
    const offered = fleet.machines.slice(WALKED).map((machine, index) => nodeOf(machine, protocolOf(machine, index)));
    const nodes = offered.map(({ node, ports }) => ({ ...node, ports }));
    writeFileSync(join(folder, 'machines.json'), JSON.stringify({ nodes }), { mode: 0o600 });
    const machines = fleet.machines.slice(0, WALKED).map(({ name, macs, redfish, ipmi }, index): DemoMachine =>
      index === 0
        ? {
            name,
            macs,
            driver: 'ipmi',
            driverInfo: { ipmi_address: ipmi.address, ipmi_port: ipmi.port, ipmi_username: ipmi.username, ipmi_password: ipmi.password },
          }
        : {
            name,
            macs,
            driver: 'redfish',
            driverInfo: {
              redfish_address: redfish.address,
              redfish_system_id: redfish.systemId,
              redfish_username: redfish.username,
              redfish_password: redfish.password,
            },
          },
    );
    console.log(`machines: ${machines.map(({ name, driver }) => `${name} (${driver})`).join(', ')}`);
    console.log(`The page: ${api}/ui\n`);
    const image: DemoImage = { url: `${boot}/demo.img`, sha256, format: 'raw' };
    const display = openDisplay(process.stdout, Date.now);
    isComplete = await walk(openClient(api), machines, image, display, started + WITHIN_SECONDS * 1000, stopped);
    if (isComplete) {
      console.log(`\n${machines.length} machines active after ${((Date.now() - started) / 1000).toFixed(1)} s.`);
      if (keep) {
        console.log(`The page: ${api}/ui`);
        console.log(`The API is at ${api}; look at it with the bare metal CLI (pip install python-openstackclient python-ironicclient):`);
        console.log(`  export OS_AUTH_TYPE=none OS_ENDPOINT=${api}`);
        for (const command of ['node list', `node show ${machines[0]!.name}`, `node inventory save ${machines[0]!.name}`])
          console.log(`  openstack baremetal ${command}`);
        console.log(`${OFFERED} more machines are running: the page adds them by one click (Add a machine).`);
        console.log('Running until Ctrl-C.');
        await stopped;
      } else console.log(`${COMMAND} --keep leaves the server and its page running.`);
    }
  } finally {
    await fleet?.close();
    await server.stop();
  }
  return isComplete;
}

/** @returns the exit status */
async function main(words: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...words],
    options: { keep: { type: 'boolean' }, qemu: { type: 'boolean' }, help: { type: 'boolean' }, port: { type: 'string' } },
  });
  const { keep = false, qemu = false, help = false, port } = values;
  if (help) {
    console.log(USAGE);
    return 0;
  }
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) < 65_536)) throw new Error(`--port ${port}: not a port\n${USAGE}`);
  let status = 0;
  // A signal ends the demonstration at any time, together with its server and machines.
  const stopped = new Promise<void>((done) => {
    for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }))
      process.on(signal, () => {
        status ||= code;
        done();
      });
  });
  const isComplete = await (qemu ? booted(keep, stopped) : simulated(keep, port === undefined ? undefined : Number(port), stopped)).catch(
    async (error: unknown) => {
      // Ctrl-C also ends the programs that this one waits for, so their failure may arrive before the handler of the signal has run.
      await setImmediate();
      if (status === 0) throw error;
      return false;
    },
  );
  // Not reached after an error, so that the log stays. Retries, because programs that a signal ended may still write.
  if (folder !== '') rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  return isComplete ? 0 : status;
}

main(process.argv.slice(2)).then(
  (status) => process.exit(status),
  (error: unknown) => {
    console.error(
      `demo: ${error instanceof Error ? error.message : String(error)}${folder === '' ? '' : `\nThe server's log: ${folder}/server.log`}`,
    );
    process.exit(1);
  },
);
