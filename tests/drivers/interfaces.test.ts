import { pause } from '../../drivers/fake/delay';
import { HARDWARE_TYPES, INTERFACES } from '../../drivers/index';
import { ANY, type Interface, type Task } from '../../drivers/interfaces';
import { INTERFACE_KINDS } from '../../model/records';
import { testTask } from '../support/task';
import { setPower } from '../support/power';
import { canOrder } from '../../conductor/core/power';

describe('hardware types', () => {
  it.each(Object.keys(HARDWARE_TYPES))('%s has an existing interface of each kind, and no duplicates', (name) => {
    const type = HARDWARE_TYPES[name]!;
    for (const kind of INTERFACE_KINDS) {
      const known = type[kind].filter((candidate) => candidate === ANY || candidate in INTERFACES[kind]);
      expect([kind, known]).not.toEqual([kind, []]);
      expect(new Set(type[kind]).size).toBe(type[kind].length);
    }
  });
  it.each([
    ['ipmi', 'boot', ['ipxe', 'pxe', 'http-ipxe', 'http']],
    ['ipmi', 'power', ['ipmitool']],
    ['ipmi', 'vendor', ['ipmitool', 'no-vendor']],
    ['redfish', 'inspect', ['redfish', 'agent', 'discoverd', 'no-inspect']],
    ['redfish', 'bios', ['redfish', 'no-bios']],
    ['manual-management', 'management', ['noop', 'fake']],
    ['manual-management', 'power', ['agent', 'fake']],
  ] as const)('%s begins its %s interfaces with those of Ironic', (type, kind, names) =>
    expect(HARDWARE_TYPES[type]![kind].slice(0, names.length)).toEqual(names),
  );
  it.each(INTERFACE_KINDS)('fake-hardware has any %s interface', (kind) => expect(HARDWARE_TYPES['fake-hardware']![kind]).toContain(ANY));
});

describe('no-* interfaces', () => {
  it.each([
    ['bios', 'no-bios'],
    ['console', 'no-console'],
    ['firmware', 'no-firmware'],
    ['inspect', 'no-inspect'],
    ['raid', 'no-raid'],
    ['rescue', 'no-rescue'],
    ['vendor', 'no-vendor'],
  ] as const)('validate rejects the %s interface %s', async (kind, name) => {
    const found = (INTERFACES[kind] as Readonly<Record<string, Interface>>)[name]!;
    const { task } = testTask({ node: { driver: 'ipmi' } });
    await expect(found.validate!(task)).rejects.toMatchObject({
      status: 400,
      message: `Driver ipmi does not support ${kind} (disabled or not implemented).`,
    });
  });
  it('no-inspect rejects an inspection', async () => {
    const { task } = testTask();
    await expect(INTERFACES.inspect['no-inspect']!.inspect(task)).rejects.toMatchObject({ name: 'UnsupportedDriverExtension' });
  });
});

describe('noop management interface', () => {
  it('accepts only the boot devices pxe and disk', async () => {
    const { task } = testTask();
    const management = INTERFACES.management.noop!;
    await management.setBootDevice(task, 'disk', true);
    expect(await management.getBootDevice(task)).toEqual({ device: 'pxe', persistent: true });
    await expect(management.setBootDevice(task, 'cdrom', true)).rejects.toThrow(
      'Invalid boot device cdrom specified, supported are pxe, disk.',
    );
  });
});

describe('fake interfaces', () => {
  it.each([
    ['power on', 'power on'],
    ['power off', 'power off'],
    ['rebooting', 'power on'],
    ['soft power off', 'power off'],
    ['soft rebooting', 'power on'],
  ] as const)('power: "%s" results in "%s"', async (order, after) => {
    const { task, node } = testTask({ node: { power_state: null } });
    const power = INTERFACES.power.fake!;
    expect(canOrder(power, order)).toBe(true);
    expect(await power.get(task)).toBeNull();
    await setPower(power, task, order);
    expect([await power.get(task), node().power_state]).toEqual([after, after]);
  });
  it('management accepts only the boot device pxe', async () => {
    const { task } = testTask();
    const management = INTERFACES.management.fake!;
    await management.setBootDevice(task, 'pxe', true);
    expect(await management.getBootDevice(task)).toEqual({ device: 'pxe', persistent: false });
    await expect(management.setBootDevice(task, 'disk', true)).rejects.toThrow('Invalid boot device disk specified.');
  });
  it('a deploy step waits for [fake]deploy_delay', async () => {
    const { task } = testTask({ options: { 'fake.deploy_delay': '3' } });
    const before = task.clock.now();
    expect(await INTERFACES.deploy.fake!.steps![0]!.run(task, {})).toEqual({ kind: 'done' });
    expect(task.clock.now() - before).toBe(3000);
  });
  it('inspect stops waiting when the conductor stops', async () => {
    const { task, stop } = testTask({ options: { 'fake.inspect_delay': '3' } });
    stop(new Error('going down'));
    await expect(INTERFACES.inspect.fake!.inspect(task)).rejects.toThrow('going down');
  });
  /** Milliseconds. */
  const waited = async (text: string, now = 0): Promise<number> => {
    let slept = 0;
    const { task } = testTask({ options: { 'fake.deploy_delay': text } });
    const clock = { now: () => now, sleep: async (milliseconds: number) => void (slept = milliseconds) };
    await pause('fake.deploy_delay')(Object.create(task, { clock: { value: clock } }) as Task);
    return slept;
  };
  it.each([
    ['0', 5, 0],
    ['2', 5, 2000],
    ['2,4', 0, 2000],
    ['2,4', 2000, 4000],
    ['2,4', 2001, 2000],
    ['4,2', 77, 4000],
    ['0.05', 77, 50],
    ['0.05, 0.1', 3, 53],
  ])('delayOf(%s, %i) is %i ms', (text, spread, expected) => {
    return expect(waited(text, spread)).resolves.toBe(expected);
  });
  it.each(['x', '1,2,3', '-1', '1.', '.5', '1e3'])('delayOf rejects %s', (text) => {
    return expect(waited(text)).rejects.toThrow('A fake delay is N or N,M seconds');
  });
  it('have one automatic clean step, which requires the ramdisk', () => {
    const steps = Object.values(INTERFACES).flatMap((named: Readonly<Record<string, Interface>>) => named.fake?.steps ?? []);
    expect(steps.filter((step) => (step.priority.clean ?? 0) > 0).map((step) => [step.step, step.requiresRamdisk])).toEqual([
      ['log_passthrough', undefined],
    ]);
  });
});
