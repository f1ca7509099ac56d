/** An IPMI BMC that we did not write (OpenIPMI's ipmi_sim) in front of a machine of the lab. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { BootSetting, MachineControl } from '../../simulator/hardware/control';

export const BMC_MAC = '52:54:00:0b:0c:0d';
/** ipmi_sim's names of boot devices (arguments of its chassis_control program) → ours. */
const BOOT: Readonly<Record<string, BootSetting['device']>> = { pxe: 'pxe', default: 'disk', cdrom: 'cdrom', bios: 'bios', none: 'disk' };

/** One of ipmi_sim's calls: `get NAME…`, `set NAME VALUE…` or `check NAME VALUE…`. */
async function chassis(machine: MachineControl, persistent: boolean, [verb, ...words]: readonly string[]): Promise<string> {
  if (verb === 'get')
    return words
      .map((name) => {
        if (name === 'power') return `power:${machine.isOn() ? 1 : 0}\n`;
        return name === 'boot'
          ? `boot:${Object.entries(BOOT).find(([, device]) => device === machine.boot().device)?.[0] ?? 'default'}\n`
          : '';
      })
      .join('');
  if (verb !== 'set') return '';
  for (let i = 0; i + 1 < words.length; i += 2) {
    const [name, value] = [words[i], words[i + 1]];
    if (name === 'power') await machine.act(value === '1' ? 'on' : 'off');
    else if (name === 'reset') await machine.act('reset');
    else if (name === 'shutdown') await machine.act('soft');
    else if (name === 'boot') machine.setBoot({ device: BOOT[value ?? ''] ?? 'disk', persistent, mode: null });
  }
  return '';
}

/** @internal */
export interface IpmiSim {
  readonly address: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  stop(): Promise<void>;
}

/**
 * @param where the namespace (absent: this one) and the address in it that the BMC listens on, and a folder for its files
 *   `machinePort`: where QEMU's `ipmi-bmc-extern` connects, so that the machine itself sees the BMC
 * @throws when it does not listen within ten seconds
 */
export async function startIpmiSim(
  machine: MachineControl,
  where: {
    readonly namespace?: string;
    readonly address: string;
    readonly port: number;
    readonly folder: string;
    readonly machinePort?: number;
    /** A boot device stays until the next one is set: ipmi_sim does not tell whether it is for one start. Absent: it is for one start. */
    readonly persistent?: boolean;
    /** Further lines: of its emulation (ipmi_sim_cmd(5)), and of its LAN configuration (ipmi_lan(5)). */
    readonly emulation?: readonly string[];
    readonly configuration?: readonly string[];
  },
): Promise<IpmiSim> {
  const folder = join(where.folder, `bmc-${machine.name}`);
  mkdirSync(join(folder, 'state'), { recursive: true });
  const socket = join(folder, 'chassis.sock');
  const server = createServer((request, response) => {
    const words = new URL(request.url ?? '/', 'http://chassis').searchParams.getAll('word');
    chassis(machine, where.persistent === true, words).then(
      (text) => response.end(text),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  }).listen(socket);
  const program = join(folder, 'chassis');
  writeFileSync(
    program,
    `#!/bin/sh\nurl=http://chassis/\nfor w in "$@"; do set -- "$@" --data-urlencode "word=$w"; shift; done\nexec curl -sfG --unix-socket ${socket} "$@" $url\n`,
  );
  chmodSync(program, 0o755);
  // The BMC's own network configuration, which the machine can read (IPMI 2.0 §23.2).
  const lanProgram = join(folder, 'lan');
  const settings = { ip_addr: where.address, ip_addr_src: 'static', subnet_mask: '255.255.255.0', mac_addr: BMC_MAC };
  const cases = Object.entries(settings).map(([name, value]) => `${name}) echo ${name}:${value};;`);
  const others =
    'default_gw_ip_addr|backup_gw_ip_addr) echo $w:0.0.0.0;; default_gw_mac_addr|backup_gw_mac_addr) echo $w:00:00:00:00:00:00;;';
  writeFileSync(lanProgram, `#!/bin/sh\nfor w in "$@"; do case $w in ${cases.join(' ')} ${others} esac; done\n`);
  chmodSync(lanProgram, 0o755);
  const users = 'none md2 md5 straight';
  writeFileSync(
    join(folder, 'lan.conf'),
    [
      `name "${machine.name}"`,
      'set_working_mc 0x20',
      ' startlan 1',
      `  addr ${where.address} ${where.port}`,
      '  priv_limit admin',
      ...['callback', 'user', 'operator', 'admin'].map((level) => `  allowed_auths_${level} ${users}`),
      // Without a GUID, the BMC answers no RMCP+ session at all (RAKP 2 carries the GUID).
      `  guid ${createHash('md5').update(machine.name).digest('hex')}`,
      `  lan_config_program "${lanProgram}"`,
      ' endlan',
      ` chassis_control "${program}"`,
      ...(where.machinePort === undefined ? [] : [` serial 15 127.0.0.1 ${where.machinePort} codec VM`]),
      ...(where.configuration ?? []),
      ' user 1 true "" "" user 10 none md2 md5 straight',
      ' user 2 true "admin" "password" admin 10 none md2 md5 straight',
      '',
    ].join('\n'),
  );
  writeFileSync(
    join(folder, 'bmc.emu'),
    [
      'mc_setbmc 0x20',
      'mc_add 0x20 0x20 no-device-sdrs 0x01 2 1 0x8f 0x1291 0x0f02 persist_sdr',
      'mc_enable 0x20',
      ...(where.emulation ?? []),
      '',
    ].join('\n'),
  );
  const log = createWriteStream(join(folder, 'log'));
  await once(log, 'open');
  const words = ['ipmi_sim', '-c', join(folder, 'lan.conf'), '-f', join(folder, 'bmc.emu'), '-s', join(folder, 'state'), '-n'];
  const command = where.namespace === undefined ? words : ['ip', 'netns', 'exec', where.namespace, ...words];
  const bmc = spawn(command[0]!, command.slice(1), { stdio: ['ignore', log, log] });
  const ended = once(bmc, 'exit');
  return {
    address: where.address,
    port: where.port,
    username: 'admin',
    password: 'password',
    stop: async () => {
      bmc.kill();
      await ended;
      log.close();
      await new Promise((done) => server.close(done));
    },
  };
}
