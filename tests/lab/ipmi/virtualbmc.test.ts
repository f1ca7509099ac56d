/** The IPMI driver at a BMC that we did not write: virtualbmc in front of a domain that QEMU runs. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Task } from '../../../drivers/interfaces';
import { ipmiManagement } from '../../../drivers/ipmi/management';
import { ipmiPower } from '../../../drivers/ipmi/power';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { createIpmiPool, type IpmiPool } from '../../../wire/ipmi/client';
import { bmcTask } from '../../drivers/bmc-task';
import { freePort } from '../../support/free-port';
import { startLibvirt, type Libvirt } from '../support/libvirt';
import { openLab, type Lab } from '../support/machines';
import { startVirtualBmc, type VirtualBmc } from './virtualbmc';
import { setPower } from '../../support/power';

jest.setTimeout(600_000);
const NAME = 'vbmc';
let lab: Lab;
let libvirt: Libvirt;
let bmcs: VirtualBmc;
let pool: IpmiPool;
let task: (info?: object, ipmi?: IpmiPool) => Task;

beforeAll(async () => {
  lab = await openLab('bloomery-vbmc');
  libvirt = await startLibvirt({ ...lab, port: 8000 });
  const machine = await lab.machine({ name: NAME, firmware: 'bios', memoryMiB: 128, cpus: 1, diskGiB: 1 });
  await libvirt.define({ ...machine, disk: machine.diskFile, console: machine.consoleFile });
  // virtualbmc connects to libvirtd by its socket, so its BMCs need not be in the namespace.
  bmcs = await startVirtualBmc({ address: '127.0.0.1', folder: lab.folder }, libvirt.uri);
  const port = await freePort();
  const { username, password } = await bmcs.add(NAME, port);
  pool = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes });
  task = (info = {}, ipmi = pool) =>
    bmcTask({
      node: {
        driver: 'ipmi',
        driver_info: { ipmi_address: '127.0.0.1', ipmi_port: port, ipmi_username: username, ipmi_password: password, ...info },
      },
      driver: { power: ipmiPower, management: ipmiManagement },
      options: { 'ipmi.command_retry_timeout': 120 },
      connections: { ipmi },
    }).task;
});
afterAll(async () => {
  await pool?.close();
  await bmcs?.stop();
  await libvirt?.stop();
  await lab?.close();
});

async function reaches(state: 'power on' | 'power off'): Promise<void> {
  const end = Date.now() + 240_000;
  while ((await ipmiPower.get(task())) !== state) {
    if (Date.now() > end) throw new Error(`not ${state} in time`);
    await delay(200);
  }
}

it('the IPMI driver switches the machine on and off', async () => {
  expect(await ipmiPower.get(task())).toBe('power off');
  await setPower(ipmiPower, task(), 'power on');
  await reaches('power on');
  expect(await libvirt.isOn(NAME)).toBe(true);
  await setPower(ipmiPower, task(), 'rebooting');
  await reaches('power on');
  await setPower(ipmiPower, task(), 'power off');
  await reaches('power off');
  expect(await libvirt.isOn(NAME)).toBe(false);
});
it.each(['pxe', 'disk', 'cdrom'])('the IPMI driver sets the boot device %s', async (device) => {
  await ipmiManagement.setBootDevice(task(), device, true);
  expect(await ipmiManagement.getBootDevice(task())).toMatchObject({ device });
});
// virtualbmc does not answer a login with a wrong password.
it('the IPMI driver fails with status 500 when the password is wrong', async () => {
  await expect(ipmiPower.get(task({ ipmi_password: 'wrong' }))).rejects.toMatchObject({ status: 500 });
});
/** pyghmi, the library of virtualbmc, keeps the state of the last session of a UDP port, with its sequence numbers. */
it('our client opens new sessions after many requests and after it closed an idle session', async () => {
  const again = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes, idleMs: 1000, keepAliveMs: 400 });
  const own = task({}, again);
  try {
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 40; n++) expect(await ipmiPower.get(own)).toBe('power off');
      await delay(3000);
    }
  } finally {
    await again.close();
  }
});
