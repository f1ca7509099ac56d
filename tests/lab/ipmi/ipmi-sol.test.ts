/** Serial-over-LAN with third-party programs: their consoles at our BMC, our console at their BMC. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import type { BootSetting, MachineControl } from '../../../simulator/hardware/control';
import { serveIpmi } from '../../../simulator/ipmi/ipmi';
import { createIpmiPool } from '../../../wire/ipmi/client';
import { freePort } from '../../support/free-port';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { needs } from '../support/needs';
import { timeoutSignal } from '../../../wire/timeout-signal';

const NOTHING: BootSetting = { device: 'none', persistent: false, mode: null };
const machine: MachineControl = { name: 'm1', macs: [], isOn: () => true, act: async () => {}, boot: () => NOTHING, setBoot: () => {} };

/** FreeIPMI takes no port above 32,767. */
async function lowPort<T>(serve: (port: number) => Promise<T>, port = 22_080): Promise<T> {
  return serve(port).catch((error: unknown) => {
    if (port === 22_099) throw error;
    return lowPort(serve, port + 1);
  });
}

it.each<[string, (port: number) => string, string, string]>([
  [
    'ipmitool with cipher suite 17',
    (port) => `ipmitool -I lanplus -H 127.0.0.1 -p ${port} -U admin -E -C 17 sol activate`,
    'operational',
    '~.',
  ],
  [
    'ipmitool with cipher suite 3',
    (port) => `ipmitool -I lanplus -H 127.0.0.1 -p ${port} -U admin -E -C 3 sol activate`,
    'operational',
    '~.',
  ],
  // `&.` ends the session.
  ['ipmiconsole with cipher suite 17', (port) => `ipmiconsole -h 127.0.0.1:${port} -u admin -p secret -I 17`, 'SOL established', '&.'],
  ['ipmiconsole with cipher suite 3', (port) => `ipmiconsole -h 127.0.0.1:${port} -u admin -p secret -I 3`, 'SOL established', '&.'],
])('%s exchanges text with our simulated BMC by serial-over-LAN', async (_, command, ready, leave) => {
  needs({ ipmitool: 'ipmitool', ipmiconsole: 'freeipmi-tools', script: 'bsdutils' });
  const bmc = await lowPort((port) =>
    serveIpmi({
      host: '127.0.0.1',
      port,
      username: 'admin',
      password: 'secret',
      machine,
      log: silentLog,
      clock: systemClock,
      random: randomBytes,
    }),
  );
  // The programs need a terminal.
  const terminal = spawn('script', ['-qfc', command(bmc.port), '/dev/null'], { env: { ...process.env, IPMI_PASSWORD: 'secret' } });
  const ended = once(terminal, 'exit');
  let text = '';
  try {
    terminal.stdout.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
    const late = timeoutSignal(50_000);
    const until = async (part: string): Promise<void> => {
      while (!text.includes(part)) await once(terminal.stdout, 'data', { signal: late });
    };
    await until(ready);
    // One of the programs drops its input until it has set up its terminal.
    const typing = setInterval(() => terminal.stdin.write('hello\r'), 500);
    await until('hello\r\nm1> ').finally(() => clearInterval(typing));
    terminal.stdin.end(leave);
    await Promise.race([ended, once(late, 'abort').then(() => Promise.reject(new Error('the program does not end its session')))]);
  } catch (error) {
    throw new Error(`${String(error)}: ${text}`, { cause: error });
  } finally {
    terminal.kill('SIGKILL');
    await bmc.close();
  }
});

it("our client exchanges text with OpenIPMI's ipmi_sim by serial-over-LAN", async () => {
  needs({ ipmi_sim: 'openipmi' });
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-ipmi-sol-'));
  // The serial line of the machine behind the BMC.
  const serial = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes) => socket.write(`<${bytes.toString('latin1')}>`));
  }).listen(0, '127.0.0.1');
  await once(serial, 'listening');
  const { port } = serial.address() as AddressInfo;
  const bmc = await startIpmiSim(machine, {
    address: '127.0.0.1',
    port: await freePort(),
    folder,
    configuration: [` sol "tcp:127.0.0.1:${port}" 115200`],
  });
  const pool = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes });
  try {
    let [text, look] = ['', (): void => {}];
    const channel = await pool.openSol(
      {
        address: bmc.address,
        port: bmc.port,
        username: bmc.username,
        password: bmc.password,
        privilege: 'ADMINISTRATOR',
        cipherSuites: [17, 3],
      },
      (bytes) => {
        text += bytes.toString('latin1');
        look();
      },
      { timeoutMs: 20_000 },
    );
    const until = (part: RegExp): Promise<void> =>
      new Promise((done) => {
        look = () => {
          if (part.test(text)) done();
        };
        look();
      });
    await channel.write(Buffer.from('abc'));
    await until(/c>/);
    await channel.write(Buffer.from('def'));
    await until(/f>/);
    expect(text.replaceAll(/[<>]/g, '')).toBe('abcdef');
    await channel.close();
    expect(await channel.closed).toBeUndefined();
  } finally {
    await pool.close();
    await bmc.stop();
    await new Promise((done) => serial.close(done));
    rmSync(folder, { recursive: true });
  }
});
