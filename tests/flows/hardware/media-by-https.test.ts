/** The life of a node whose BMC takes images by https only: the boot service has a second port, with TLS. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { ownCertificate } from '../../../wire/http/certificate';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const NAMES = ['openbmc', 'huawei-ibmc', 'xfusion-ibmc'] as const satisfies readonly PersonalityName[];
const database = useDatabase();
let folder: string;
let whole: WholeServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-media-'));
  const { certificate, privateKey } = ownCertificate('127.0.0.1', 'boot', Date.now(), randomBytes);
  writeFileSync(join(folder, 'boot.crt'), certificate);
  writeFileSync(join(folder, 'boot.key'), privateKey, { mode: 0o600 });
  whole = await startWholeServer(database.connection(), {
    machines: NAMES.length,
    maker: (index) => ({ personality: NAMES[index] }),
    options: {
      'DEFAULT.enabled_boot_interfaces': ['ipxe', 'redfish-virtual-media'],
      'boot.https_port': 0,
      'boot.cert_file': join(folder, 'boot.crt'),
      'boot.key_file': join(folder, 'boot.key'),
      'redfish.connection_retry_interval': 0,
      'agent.command_wait_interval': 1,
    },
  });
}, 60_000);
afterAll(async () => {
  await whole.close();
  rmSync(folder, { recursive: true });
}, 60_000);

it.each(NAMES)(
  '%s: is cleaned, deployed and cleaned again from virtual media',
  async (name) => {
    const machine = whole.fleet.machines[NAMES.indexOf(name)]!;
    const uuid = await whole.enrol(machine, {
      boot_interface: 'redfish-virtual-media',
      // A boot image for UEFI needs a boot loader, which this server does not have.
      properties: { capabilities: 'boot_mode:bios' },
    });
    await whole.provide(uuid);
    await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: whole.deployable() }]);
    await whole.order(uuid, 'active');
    await whole.reach(uuid, 'active');
    await whole.order(uuid, 'deleted');
    await whole.reach(uuid, 'available');
  },
  300_000,
);
