import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseIni } from '../../../config/ini';
import { switchesIn } from '../../../wire/switches/config';
import { createSwitches, SwitchError, type PortVlans } from '../../../wire/switches/switches';
import { parseVlans } from '../../../wire/switches/vlans';
import { createSwitchWorker, type DeviceChange } from '../../../wire/switches/worker';

const never = new AbortController().signal;

it.each<readonly [string | readonly string[], readonly number[] | RegExp]>([
  ['100,102-104, 106,,', [100, 102, 103, 104, 106]],
  [
    ['2', '1', '1-2'],
    [1, 2],
  ],
  ['', []],
  ['0', /^VLAN ID must be between 1 and 4094, got 0$/],
  ['4095', /^VLAN ID must be between 1 and 4094, got 4095$/],
  ['0-5', /^VLAN IDs must be between 1 and 4094, got range 0-5$/],
  ['1-4095', /^VLAN IDs must be between 1 and 4094, got range 1-4095$/],
  ['9-5', /^Invalid VLAN range 9-5: start must be less than or equal to end$/],
  ['a', /^Invalid VLAN ID "a": invalid literal for int\(\) with base 10: 'a'$/],
  ['1-b', /^Invalid VLAN range format "1-b": invalid literal/],
])('parseVlans parses or rejects %j', (given, expected) => {
  if (expected instanceof RegExp) expect(() => parseVlans(given)).toThrow(expected);
  else expect(parseVlans(given)).toEqual(expected);
});

const SECTION = '[switch:one]\ndriver_type = generic-switch\ndevice_type = netmiko_arista_eos\naddress = 192.0.2.1\nusername = admin\n';
describe('switchesIn', () => {
  it('reads the keys of networking-generic-switch', () => {
    const text = `${SECTION}mac_address = AA:00:00:00:00:01\npassword = p\nenable_secret = s\nport = 22\npersist = True\nallowed_vlans = 5,7-8\nngs_max_connections = 1\nother = x\n[DEFAULT]\na = b\n`;
    expect(switchesIn(parseIni(text))).toEqual([
      {
        name: 'one',
        driver: 'generic-switch',
        mac: 'aa:00:00:00:00:01',
        allowedVlans: [5, 7, 8],
        device: {
          ngs_save_configuration: 'True',
          ngs_ssh_reuse_connection: 'True',
          device_type: 'netmiko_arista_eos',
          ip: '192.0.2.1',
          username: 'admin',
          password: 'p',
          secret: 's',
          port: '22',
          ngs_mac_address: 'AA:00:00:00:00:01',
          ngs_max_connections: '1',
        },
      },
    ]);
  });
  it('sets use_keys with key_file', () => {
    const [one] = switchesIn(parseIni(`${SECTION}mac_address = aa:00:00:00:00:01\nkey_file = /key\n`));
    expect(one!.device).toMatchObject({ key_file: '/key', use_keys: 'True', ngs_save_configuration: 'False' });
  });
  it.each([
    [SECTION, "Invalid configuration for switch 'one': missing required fields: mac_address; must specify either 'password' or 'key_file'"],
    ['[switch:two]\npassword = x\nmac_address = y\n', "'two': missing required fields: driver_type, device_type, address, username"],
  ])('rejects the incomplete section %j', (text, expected) => {
    expect(() => switchesIn(parseIni(text))).toThrow(expected);
  });
});

describe('createSwitches', () => {
  const settings = switchesIn(
    parseIni(
      `${SECTION}mac_address = AA:00:00:00:00:01\npassword = p\nallowed_vlans = 5-9\n${SECTION.replace('one', 'two')}mac_address = aa:00:00:00:00:02\npassword = p\n`,
    ),
  );
  const vlans = (more: Partial<PortVlans> = {}): PortVlans => ({
    mode: 'access',
    nativeVlan: 5,
    allowedVlans: [],
    defaultVlan: null,
    ...more,
  });
  const bench = (permitted: readonly number[] | null = null) => {
    const done: DeviceChange[] = [];
    const driver = { change: async (change: DeviceChange) => void done.push(change) };
    return { done, switches: createSwitches(settings, permitted, { 'generic-switch': driver }, async () => {}) };
  };
  it('passes a change to the switch with the MAC address or name', async () => {
    const { done, switches } = bench();
    await switches.update('AA:00:00:00:00:01', 'Ethernet1/2', vlans({ mode: 'trunk', allowedVlans: [6, 7], defaultVlan: 1 }), never);
    await switches.reset('two', 'swp1', vlans({ nativeVlan: 100 }), never);
    await switches.reset('two', 'GigabitEthernet 1/0/1-a', vlans({ nativeVlan: 100 }), never);
    expect(done).toEqual([
      { switch: 'one', operation: 'update', port: 'Ethernet1/2', native_vlan: 5, trunk_vlans: [6, 7], default_vlan: 1 },
      { switch: 'two', operation: 'reset', port: 'swp1', native_vlan: 100, trunk_vlans: [], default_vlan: null },
      { switch: 'two', operation: 'reset', port: 'GigabitEthernet 1/0/1-a', native_vlan: 100, trunk_vlans: [], default_vlan: null },
    ]);
  });
  it.each<readonly [string, string, Partial<PortVlans>, string]>([
    ['three', 'swp1', {}, 'Switch three could not be found or is not supported by any configured switch driver.'],
    ['one', 'swp1; reboot', {}, '"swp1; reboot" is not the name of a switch port'],
    ['one', 'swp1\nreboot', {}, 'is not the name of a switch port'],
    ['one', '$(reboot)', {}, 'is not the name of a switch port'],
    ['one', '--db=tcp:192.0.2.1:6640', {}, 'is not the name of a switch port'],
    ['one', 'swp1 -- del-br br0', {}, 'is not the name of a switch port'],
    ['one', 'swp1 shutdown now', {}, 'is not the name of a switch port'],
    ['one', '', {}, 'is not the name of a switch port'],
    ['one', 'x'.repeat(129), {}, 'is not the name of a switch port'],
    ['one', 'swp1', { mode: 'hybrid' }, 'mode must be one of: access, trunk'],
    ['one', 'swp1', { nativeVlan: null }, 'native_vlan must be an integer between 1 and 4094'],
    ['one', 'swp1', { nativeVlan: 10 }, 'VLANs [10] are not allowed for update_port on switch one. Allowed VLANs: [5, 6, 7, 8, 9]'],
    ['two', 'swp1', { nativeVlan: 10 }, 'VLANs [10] are not allowed for update_port on switch two. Allowed VLANs: [1]'],
  ])('rejects a change of switch %s, port %j, VLANs %j', async (switchId, port, more, expected) => {
    const { done, switches } = bench([1]);
    const attempt = switches.update(switchId, port, vlans(more), never);
    await expect(attempt).rejects.toThrow(SwitchError);
    await expect(attempt).rejects.toThrow(expected);
    expect(done).toEqual([]);
  });
});

describe('worker process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'switch-worker-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  /** A program in place of Python. It gets the words that Python would get. */
  const program = (name: string, script: string): string => {
    const path = join(folder, name);
    writeFileSync(path, `#!${process.execPath}\n${script}`, { mode: 0o755 });
    return path;
  };
  const change: DeviceChange = { switch: 'one', operation: 'update', port: 'p', native_vlan: 5, trunk_vlans: [], default_vlan: null };
  const ANSWERS = program(
    'answers',
    `let first = true;
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, port, switches } = JSON.parse(line);
  if (first) { first = false; console.log(JSON.stringify({ ready: switches.one.a === 'b' }) + '\\nno JSON'); return; }
  if (port === 'end') { console.error('Traceback\\nValueError: odd'); process.exit(1); }
  if (port !== 'silent') console.log(JSON.stringify(port === 'bad' ? { id, error: 'no such port' } : { id }));
});`,
  );
  it('answers each change, and is started again after it ended', async () => {
    const worker = createSwitchWorker(ANSWERS, { one: { a: 'b' } });
    await worker.change(change, never);
    const stop = new AbortController();
    const silent = worker.change({ ...change, port: 'silent' }, stop.signal);
    await expect(worker.change({ ...change, port: 'bad' }, never)).rejects.toThrow(/^no such port$/);
    stop.abort(new Error('stopped'));
    await expect(silent).rejects.toThrow('stopped');
    const lost = worker.change({ ...change, port: 'silent' }, never);
    const ended = [lost, worker.change({ ...change, port: 'end' }, never)];
    for (const item of ended) await expect(item).rejects.toThrow(/^the worker for switches ended: ValueError: odd$/);
    await worker.change(change, never);
    await worker.close();
  });
  it('fails if it cannot be started', async () => {
    const worker = createSwitchWorker(join(folder, 'missing'), {});
    await expect(worker.change(change, never)).rejects.toThrow(/^the worker for switches does not start: spawn .*ENOENT/);
    await worker.close();
  });
});
