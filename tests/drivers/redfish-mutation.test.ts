/**
 * Mutated answers of a Redfish service: our drivers return a result or a proper error, whatever comes. REDFISH_MUTATIONS=1000000 runs a
 * million of them.
 */
import { INTERFACES } from '../../drivers/index';
import type { Step, Task } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import { BASIC, testBmc } from '../simulator/redfish-bmc';
import { bentService } from '../wire/redfish/mutation';
import { sameNumbers } from '../wire/udp-relay';
import { bmcTask } from './bmc-task';
import { setPower } from '../support/power';

const COUNT = Number(process.env['REDFISH_MUTATIONS'] ?? 10_000);
const SYSTEM = '/redfish/v1/Systems/sim-0';

/** Every resource of the simulated BMC, as JSON text. */
async function resources(): Promise<ReadonlyMap<string, string>> {
  const bmc = await testBmc();
  const found = new Map<string, string>();
  const waiting = ['/redfish/v1/'];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (found.has(path)) continue;
    const text = JSON.stringify((await bmc.ask('GET', path, undefined, BASIC)).body);
    found.set(path, text);
    waiting.push(...[...text.matchAll(/"(?:@odata\.id|Uri)":"(\/[^"#]+)"/g)].map(([, next]) => next!));
  }
  await bmc.close();
  return found;
}

type Operation = readonly [name: string, run: (task: Task) => Promise<unknown>];
const { power, management, vendor, bios, firmware, inspect, raid } = INTERFACES;
const of = <T>(table: Readonly<Record<string, T>>): T => table['redfish']!;
const ARGUMENTS: Readonly<Record<string, JsonObject>> = {
  apply_configuration: { settings: [{ name: 'ProcTurboMode', value: 'Enabled' }] },
  update: { settings: [{ component: 'bmc', url: 'http://192.0.2.1/x.bin' }] },
};
const stepsOf = (owner: string, steps: readonly Step[] = []): readonly Operation[] =>
  steps.flatMap((row): readonly Operation[] => {
    const args = ARGUMENTS[row.step] ?? {};
    return [
      [`${owner}.${row.step}`, (task) => row.run(task, args)],
      ...(row.poll ? [[`poll of ${owner}.${row.step}`, (task: Task) => row.poll!(task, args)] as const] : []),
    ];
  });
const powers = of(power);
const manages = of(management);
const OPERATIONS: readonly Operation[] = [
  ['power', (task) => powers.get(task)],
  ['look', (task) => powers.getStatus!(task)],
  ['on', (task) => setPower(powers, task, 'power on')],
  ['off', (task) => setPower(powers, task, 'power off')],
  ['reboot', (task) => setPower(powers, task, 'rebooting', 5)],
  ['boot device', (task) => manages.setBootDevice(task, 'pxe', true)],
  ['boot device read', (task) => manages.getBootDevice(task)],
  ['boot mode', (task) => manages.bootMode!.set(task, 'bios')],
  ['boot modes', (task) => manages.bootMode!.supported!(task)],
  ['secure boot', (task) => manages.secureBoot!.set(task, true)],
  ['secure boot read', (task) => manages.secureBoot!.get(task)],
  ['vendor', (task) => manages.detectVendor!(task)],
  ['MAC addresses', (task) => manages.macAddresses!(task)],
  ['lamps', (task) => manages.indicators!.supported(task)],
  ['lamp', (task) => manages.indicators!.set!(task, 'disk', 'a:b', 'on')],
  ...(manages.sensors ? [['sensors', (task: Task) => manages.sensors!(task)] as const] : []),
  ...(manages.virtualMedia ? [['media', (task: Task) => manages.virtualMedia!.get(task)] as const] : []),
  ...(manages.virtualMedia ? [['eject', (task: Task) => manages.virtualMedia!.detach(task)] as const] : []),
  ...stepsOf('management', manages.steps),
  ...stepsOf('bios', bios['redfish']?.steps),
  ...stepsOf('firmware', firmware['redfish']?.steps),
  ...stepsOf('raid', raid['redfish']?.steps),
  ...(inspect['redfish'] ? [['inspect', (task: Task) => inspect['redfish']!.inspect(task)] as const] : []),
  ...Object.entries(of(vendor).methods!).map(([name, method]): Operation => [
    name,
    async (task) => {
      const args = name === 'create_subscription' ? { Destination: 'https://x.example/', EventTypes: ['Alert'] } : { id: '1' };
      await method.validate?.(task, args);
      return method.run(task, args, method.http[0]!);
    },
  ]),
];

it('for mutated responses, each operation returns a result or a Fault, and never a false "power off"', async () => {
  const next = sameNumbers(1);
  const { pool, answers, said, begin } = bentService(await resources(), next);
  const unexpected: string[] = [];
  const ends = { answered: 0, refused: 0 };
  for (let n = 0; answers() < COUNT; n++) {
    const [name, run] = OPERATIONS[n % OPERATIONS.length]!;
    const { task } = bmcTask({
      node: {
        driver: 'redfish',
        driver_info: { redfish_address: 'http://192.0.2.9', ...(next() < 0.7 ? { redfish_system_id: SYSTEM } : {}) },
      },
      driver: { power: powers, management: manages },
      options: { 'redfish.connection_attempts': 2, 'redfish.firmware_update_bmc_timeout': 0 } as object,
      connections: { redfish: pool },
    });
    begin();
    try {
      const answer = await run(task);
      ends.answered++;
      const off = name === 'power' ? answer : name === 'look' ? (answer as { power: unknown }).power : undefined;
      if (off === 'power off' && !/"Off"|"PoweringOff"/.test(said())) unexpected.push(`${name}: power off of nothing`);
    } catch (error) {
      ends.refused++;
      const isFault = error instanceof Fault && error.message.length < 10_000;
      if (!isFault) unexpected.push(`${name}: ${error instanceof Error ? (error.stack ?? error.message).slice(0, 600) : String(error)}`);
    }
    if (unexpected.length > 20) break;
    // Lets other work run.
    if (n % 200 === 0) await new Promise((done) => setImmediate(done));
  }
  expect(unexpected).toEqual([]);
  expect(Math.min(ends.answered, ends.refused)).toBeGreaterThan(COUNT / 1000);
}, 3_600_000);
