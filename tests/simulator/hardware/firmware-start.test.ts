/** The firmware interface and the sensors of the driver `redfish` with a simulated BMC. */
import type { Step } from '../../../drivers/interfaces';
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { redfishFirmware } from '../../../drivers/redfish/steps/firmware';
import type { JsonObject } from '../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { bmcTask } from '../../drivers/bmc-task';
import { testBmc, type TestBmc } from '../redfish-bmc';

let bmc: TestBmc;
let pool: RedfishPool;
beforeEach(async () => {
  bmc = await testBmc();
  bmc.on = true;
  pool = createRedfishPool();
  bmc.files.set('/bios', 'firmware bios 2.1\nrest').set('/bmc', 'firmware bmc 3.0\n').set('/nic', 'firmware nic 4.4\n');
});
afterEach(async () => {
  await pool.close();
  await bmc.close();
});

const bench = () =>
  bmcTask({
    node: {
      driver: 'redfish',
      provision_state: 'cleaning',
      clean_step: { step: 'update', interface: 'firmware', priority: 0 },
      driver_info: {
        redfish_address: bmc.url,
        redfish_system_id: '/redfish/v1/Systems/sim-0',
        redfish_username: 'admin',
        redfish_password: 'password',
      },
    },
    driver: { firmware: redfishFirmware },
    options: { 'redfish.connection_attempts': 1 },
    connections: { redfish: pool },
  });
const step = (redfishFirmware.steps as readonly Step[])[0]!;

it('firmware.update updates BIOS, network adapter and BMC of a simulated machine in order', async () => {
  const made = bench();
  const settings = [
    { component: 'bios', url: `${bmc.filesUrl}/bios` },
    { component: 'nic:1', url: `${bmc.filesUrl}/nic` },
    { component: 'bmc', url: `${bmc.filesUrl}/bmc` },
  ];
  let outcome = await step.run(made.task, { settings: settings });
  let starts = 0;
  for (let looks = 0; outcome.kind === 'wait' && looks < 60; looks++) {
    // Only the download runs in real time; the test's clock controls the rest.
    await new Promise((resolve) => setTimeout(resolve, 30));
    const seconds = outcome.pollEvery!;
    bmc.now += seconds * 1000;
    await made.task.clock.sleep(seconds * 1000);
    outcome = await step.poll!(made.task, {});
    const ordered = made.events.filter((event) => event === 'power: rebooting').length;
    for (; starts < ordered; starts++) bmc.start();
  }
  expect(outcome).toEqual({ kind: 'done' });
  expect(made.events.at(-1)).toMatch(/^firmware: bios=2\.1, bmc=3\.0, nic:[^=]+=4\.4/);
  expect(starts).toBe(2);
  expect(made.node().driver_internal_info).toEqual({});
});

it('sensors are read from a simulated machine', async () => {
  const found = (await redfishManagement.sensors!(bench().task)) as Readonly<Record<string, Readonly<Record<string, JsonObject>>>>;
  expect(Object.keys(found)).toEqual(['Extra', 'Fan', 'Temperature', 'Power', 'Drive']);
  for (const kind of ['Fan', 'Temperature', 'Power'])
    expect(Object.values(found[kind]!)).toEqual(expect.arrayContaining([expect.objectContaining({ health: 'OK', state: 'Enabled' })]));
  expect(Object.values(found['Temperature']!).every((value) => typeof value['reading_celsius'] === 'number')).toBe(true);
});
