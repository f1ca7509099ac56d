/**
 * Many moves of switch ports between VLANs: on Open vSwitch, and on a switch with our own command line. Each gets 30 moves a second while
 * earlier ones are under way. All take effect in their order, with one login.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseIni } from '../../../config/ini';
import { switchesIn } from '../../../wire/switches/config';
import { createSwitches, type Switches } from '../../../wire/switches/switches';
import { createSwitchWorker } from '../../../wire/switches/worker';
import { openLab, type Lab } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { startOpenVSwitch, type OpenVSwitch } from '../support/open-vswitch';
import { prepareSwitchLogin, type SwitchLogin } from '../support/switch-login';
import { programs } from '../support/venv';

const BRIDGE = 'ovs0';
const PORTS = 60;
const A_SECOND = 30;
const SECONDS = 20;
const IDLE = 10;
/** Ports of the two switches' SSH servers. */
const [SSH_OVS, SSH_CLI] = [2222, 2223];

let lab: Lab;
let ovs: OpenVSwitch;
let switches: Switches;
const logins: Record<string, SwitchLogin> = {};
const moves = (): string => join(lab.folder, 'moves');

beforeAll(async () => {
  needs({ ip: 'iproute2', 'ovs-vsctl': 'openvswitch-switch', sshd: 'openssh-server' });
  const python = join(await programs('switches', ['networking-generic-switch==10.2.0']), 'python');
  lab = await openLab('bloomery-moves');
  ovs = await startOpenVSwitch(lab, BRIDGE);
  const added = Array.from({ length: PORTS }, (_, at) => [
    '--',
    'add-port',
    BRIDGE,
    `p${at}`,
    '--',
    'set',
    'interface',
    `p${at}`,
    'type=internal',
  ]);
  await ovs.control(...added.flat().slice(1));
  writeFileSync(moves(), '');
  logins['ovs'] = await prepareSwitchLogin(lab, { port: SSH_OVS, switchFolder: join(lab.folder, 'openvswitch') });
  const command = `${process.execPath} ${join(__dirname, '../support/switch-cli.mjs')} ${moves()}`;
  logins['cli'] = await prepareSwitchLogin(lab, { port: SSH_CLI, command });
  for (const login of Object.values(logins)) await login.start();
  const section = (name: string, port: number, device: string, mac: string): readonly string[] => [
    `[switch:${name}]`,
    'driver_type = generic-switch',
    `device_type = ${device}`,
    'address = 127.0.0.1',
    `port = ${port}`,
    'username = root',
    `key_file = ${logins[name]!.key}`,
    `mac_address = ${mac}`,
  ];
  const settings = switchesIn(
    parseIni(
      [
        ...section('ovs', SSH_OVS, 'netmiko_ovs_linux', '02:00:00:00:00:aa'),
        ...section('cli', SSH_CLI, 'netmiko_arista_eos', '02:00:00:00:00:bb'),
        '',
      ].join('\n'),
    ),
  );
  // The worker's Python runs inside the namespace, so that it reaches the switches there.
  const inside = join(lab.folder, 'python');
  writeFileSync(inside, `#!/bin/sh\nexec ip netns exec ${lab.namespace} ${python} "$@"\n`);
  chmodSync(inside, 0o755);
  const worker = createSwitchWorker(inside, Object.fromEntries(settings.map(({ name, device }) => [name, device])));
  switches = createSwitches(settings, null, { 'generic-switch': worker }, () => worker.close());
}, 1_200_000);
afterAll(async () => {
  await switches?.close();
  await lab?.close();
});

const port = (name: string, at: number): string => (name === 'ovs' ? `p${at}` : `Ethernet${at}`);
/** The VLAN of each port, as the switch shows it. */
async function vlansOf(name: string): Promise<readonly number[]> {
  if (name === 'ovs') {
    const text = await ovs.control('--format=csv', '--data=bare', '--no-headings', '--columns=name,tag', 'list', 'port');
    const tags = new Map(text.split('\n').map((line) => line.split(',') as [string, string]));
    return Array.from({ length: PORTS }, (_, at) => Number(tags.get(`p${at}`)));
  }
  const last = new Map(
    readFileSync(moves(), 'utf8')
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  );
  return Array.from({ length: PORTS }, (_, at) => Number(last.get(`Ethernet${at}`)));
}

it.each(['ovs', 'cli'])(
  'on the switch %s, many moves leave each port in the VLAN of its last move, over one SSH login',
  async (name) => {
    const signal = new AbortController().signal;
    const wanted: number[] = [];
    const waits: number[] = [];
    const begun = performance.now();
    const move = async (index: number): Promise<void> => {
      const at = index % PORTS;
      // As at the beginning of a node's phase: the VLAN of the phase, with the idle VLAN as the default.
      wanted[at] = 100 + (index % 997);
      const started = performance.now();
      const vlans = { mode: 'access', nativeVlan: wanted[at], allowedVlans: [], defaultVlan: IDLE } as const;
      await switches.update(name, port(name, at), vlans, signal);
      waits.push(performance.now() - started);
    };
    const going: Promise<void>[] = [];
    for (let index = 0; index < SECONDS * A_SECOND; index++) {
      going.push(move(index));
      await delay(Math.max(0, begun + ((index + 1) * 1000) / A_SECOND - performance.now()));
    }
    const asked = performance.now();
    await Promise.all(going);
    const seconds = (performance.now() - begun) / 1000;
    waits.sort((a, b) => a - b);
    process.stderr.write(
      `${name}: ${going.length} moves in ${seconds.toFixed(1)} s (${(going.length / seconds).toFixed(1)}/s; asked for within ` +
        `${((asked - begun) / 1000).toFixed(1)} s), half within ${(waits[waits.length >> 1]! / 1000).toFixed(1)} s, ` +
        `all within ${(waits.at(-1)! / 1000).toFixed(1)} s, ${logins[name]!.logins()} login(s)\n`,
    );
    expect(await vlansOf(name)).toEqual(wanted);
    expect(logins[name]!.logins()).toBe(1);
    // One more move, after a pause, uses the same session.
    await switches.update(name, port(name, 0), { mode: 'access', nativeVlan: 7, allowedVlans: [], defaultVlan: null }, signal);
    expect((await vlansOf(name))[0]).toBe(7);
    expect(logins[name]!.logins()).toBe(1);
  },
  900_000,
);
