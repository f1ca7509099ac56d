/** npm run demo: the server, three simulated machines, and their way from enroll to active. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../model/clock';
import { silentLog } from '../model/log';
import { startFleet } from '../simulator/fleet/fleet';
import { startServerProcess, type Sections } from '../tests/lab/support/server';
import { openClient } from './client';
import { openDisplay } from './progress';
import { booted } from './qemu';
import { walk, type DemoImage, type DemoMachine } from './walk';

const root = join(__dirname, '../..');
const folder = join(root, '.cache/demo');
const WITHIN_SECONDS = 90;

const USAGE = `npm run demo [-- OPTIONS]: three simulated machines from enroll to active

  --keep      leave the server and the machines running until Ctrl-C
  --qemu      one machine that really boots, in QEMU (root, Debian; see docs/install.md)
  --help      this text`;

/** Whether 127.0.0.1 has this TCP port free. */
const free = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const probe = createServer();
    probe.once('error', () => done(false)).listen(port, '127.0.0.1', () => probe.close(() => done(true)));
  });

/** A disk image of 8 MiB for machines that only pretend to boot it: its bytes are pseudo-random, so that its checksum means something. */
function makeImage(path: string): string {
  const bytes = randomBytes(8 << 20);
  writeFileSync(path, bytes);
  return createHash('sha256').update(bytes).digest('hex');
}

/** Where the server is, by its ready line. */
const placeOf = (ready: string, name: 'API' | 'boot'): string => new RegExp(`${name} (\\S+?),`).exec(ready)![1]!;

const sections = (apiPort: number): Sections => ({
  DEFAULT: {
    my_ip: '127.0.0.1',
    enabled_hardware_types: 'ipmi,redfish',
    enabled_boot_interfaces: 'ipxe',
    enabled_deploy_interfaces: 'direct',
    enabled_inspect_interfaces: 'agent',
    enabled_network_interfaces: 'noop',
  },
  api: { host_ip: '127.0.0.1', port: apiPort },
  conductor: {
    deploy_kernel: `file://${folder}/state/httpboot/kernel`,
    deploy_ramdisk: `file://${folder}/state/httpboot/ramdisk`,
    file_url_allowed_paths: folder,
  },
  boot: { http_host: '127.0.0.1', http_port: 0, tftp: 'false' },
});

async function simulated(keep: boolean): Promise<void> {
  const started = Date.now();
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'state/httpboot'), { recursive: true });
  const sha256 = makeImage(join(folder, 'state/httpboot/demo.img'));
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, 'state/httpboot', name), randomBytes(64 << 10));
  const server = await startServerProcess(folder, sections((await free(6385)) ? 6385 : 0));
  console.log(server.ready);
  const [api, boot] = [placeOf(server.ready, 'API'), placeOf(server.ready, 'boot')];
  const fleet = await startFleet({
    count: 3,
    bootUrl: boot,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
  });
  try {
    const machines = fleet.machines.map(({ name, macs, redfish, ipmi }, index): DemoMachine =>
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
    console.log(`machines: ${machines.map(({ name, driver }) => `${name} (${driver})`).join(', ')}\n`);
    const image: DemoImage = { url: `${boot}/demo.img`, sha256, format: 'raw' };
    await walk(openClient(api), machines, image, openDisplay(process.stdout, Date.now), started + WITHIN_SECONDS * 1000);
    console.log(`\n${machines.length} machines active after ${((Date.now() - started) / 1000).toFixed(1)} s.`);
    console.log(`The API is at ${api}; look at it with the bare metal CLI (pip install python-openstackclient python-ironicclient):`);
    console.log(`  export OS_AUTH_TYPE=none OS_ENDPOINT=${api}`);
    for (const command of ['node list', `node show ${machines[0]!.name}`, `node inventory save ${machines[0]!.name}`])
      console.log(`  openstack baremetal ${command}`);
    if (keep) {
      console.log('Running until Ctrl-C.');
      await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    } else console.log('(npm run demo -- --keep leaves it running.)');
  } finally {
    await fleet.close();
    await server.stop();
  }
}

async function main(words: readonly string[]): Promise<void> {
  const unknown = words.find((word) => !['--keep', '--qemu', '--help'].includes(word));
  if (unknown !== undefined) throw new Error(`unknown option ${unknown}\n${USAGE}`);
  if (words.includes('--help')) {
    console.log(USAGE);
    return;
  }
  const keep = words.includes('--keep');
  await (words.includes('--qemu') ? booted(keep) : simulated(keep));
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(`demo: ${error instanceof Error ? error.message : String(error)}\nThe server's log: .cache/demo/server.log`);
    process.exit(1);
  },
);
