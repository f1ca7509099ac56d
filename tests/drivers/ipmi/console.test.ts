/** The console of an IPMI node on a TCP port: driver, our client and our BMC together. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createConsoleLogs, type ConsoleLogs } from '../../../drivers/console-logs';
import { createConsoles } from '../../../drivers/consoles';
import { ipmiConsole } from '../../../drivers/ipmi/console';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { createSerial } from '../../../simulator/hardware/serial';
import { createIpmiPool } from '../../../wire/ipmi/client';
import { optionsOf } from '../../support/options';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { testBmc } from '../../wire/ipmi/bmc';
import { bmcTask } from '../bmc-task';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function bench(info: JsonObject = {}, options: object = {}, consoleLogs?: ConsoleLogs) {
  const serial = createSerial('m1');
  const bmc = await testBmc({ sol: { serial: serial.port, port: 623 } });
  stops.push(() => bmc.close());
  const ipmi = createIpmiPool({ log: silentLog, clock: { now: () => Date.now() }, random: randomBytes, resendMs: 40 });
  stops.push(() => ipmi.close());
  const consoles = { ...createConsoles(silentLog), openSol: ipmi.openSol };
  stops.push(() => consoles.closeAll());
  const driver_info = { ipmi_address: '127.0.0.1', ipmi_port: bmc.port, ipmi_username: 'admin', ipmi_password: 'secret', ...info };
  const made = bmcTask({
    node: { driver: 'ipmi', driver_info },
    driver: { console: ipmiConsole },
    options: { 'console.socat_address': '127.0.0.1', ...options },
    connections: { ipmi, consoles, consoleLogs },
  });
  return { ...made, serial, consoles };
}
interface Client {
  readonly socket: Socket;
  text(): string;
  until(part: string): Promise<void>;
  readonly ended: Promise<unknown>;
}
async function client(port: number): Promise<Client> {
  const socket = connect(port, '127.0.0.1');
  stops.push(async () => socket.destroy());
  let text = '';
  socket.on('data', (bytes) => (text += bytes.toString('latin1')));
  const ended = new Promise((done) => socket.once('close', done));
  await once(socket, 'connect');
  const until = async (part: string): Promise<void> => {
    while (!text.includes(part)) await once(socket, 'data');
  };
  return { socket, text: () => text, until, ended };
}
const range = async (): Promise<{ readonly first: number; readonly text: string }> => {
  const first = await freePort();
  return { first, text: `${first}:${first + 2}` };
};

it('connects one client at a time to the serial console, until it disconnects', async () => {
  const port = await freePort();
  const { task, serial } = await bench({ ipmi_terminal_port: port });
  await ipmiConsole.start(task);
  expect(await ipmiConsole.get(task)).toEqual({ type: 'socat', url: `tcp://127.0.0.1:${port}` });
  const first = await client(port);
  first.socket.write('hello\r');
  await first.until('hello\r\nm1> ');
  serial.log('booting');
  await first.until('booting');
  const second = await client(port);
  await second.ended;
  expect(second.text()).toBe('the console is in use\r\n');
  first.socket.write('\r~B');
  await first.until('[break]');
  first.socket.write('\r~.');
  await first.ended;
  first.socket.destroy();
  for (;;) {
    const third = await client(port);
    third.socket.write('again\r');
    await Promise.race([third.until('again\r'), third.ended]);
    if (third.text().includes('again\r')) break;
  }
  await ipmiConsole.stop(task);
  await expect(client(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
it('takes a port of [console]port_range, stores it in driver_internal_info, and listens again after a restart', async () => {
  const { first, text } = await range();
  const { task, node, consoles } = await bench({}, { 'console.port_range': [text] });
  await ipmiConsole.start(task);
  expect(node().driver_internal_info).toMatchObject({ allocated_ipmi_terminal_port: first });
  await consoles.closeAll();
  expect(await ipmiConsole.get(task)).toEqual({ type: 'socat', url: `tcp://127.0.0.1:${first}` });
  (await client(first)).socket.destroy();
  await ipmiConsole.stop(task);
  expect(node().driver_internal_info).not.toHaveProperty('allocated_ipmi_terminal_port');
});
it('start fails when no port of the range is free', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  stops.push(() => new Promise((done) => taken.close(done)));
  const { port } = taken.address() as { port: number };
  const { task } = await bench({}, { 'console.port_range': [`${port}:${port + 1}`] });
  await expect(ipmiConsole.start(task)).rejects.toMatchObject({ name: 'NoFreeIPMITerminalPorts' });
});
it('sends the login error of the BMC to the client, without the password', async () => {
  const port = await freePort();
  const { task } = await bench({ ipmi_terminal_port: port, ipmi_password: 'hidden' });
  await ipmiConsole.start(task);
  const peer = await client(port);
  await peer.ended;
  expect(peer.text()).toBe('wrong password (RAKP 2 HMAC)\r\n');
});
it('disconnects an idle client after [console]terminal_timeout', async () => {
  const port = await freePort();
  const { task } = await bench({ ipmi_terminal_port: port }, { 'console.terminal_timeout': 0.2 });
  await ipmiConsole.start(task);
  const peer = await client(port);
  await peer.ended;
  expect(peer.text()).toContain('no traffic for too long');
});
it('disconnects an active client after [console]max_session_time', async () => {
  const port = await freePort();
  const { task } = await bench({ ipmi_terminal_port: port }, { 'console.max_session_time': 0.3 });
  await ipmiConsole.start(task);
  const peer = await client(port);
  const typing = setInterval(() => peer.socket.write('x'), 20);
  await peer.ended;
  clearInterval(typing);
  expect(peer.text()).toContain('the session reached its time limit');
});
it('keeps the end of what the machine said before a client connected', async () => {
  const port = await freePort();
  const { task, serial, consoles } = await bench({ ipmi_terminal_port: port, console_log_size: 1 });
  const { openSol } = consoles;
  let lines = 0;
  consoles.openSol = async (...given) => {
    const line = await openSol(...given);
    lines++;
    return line;
  };
  await ipmiConsole.start(task);
  await until('the line is open', () => lines === 1);
  serial.log('x'.repeat(2000));
  serial.log('the end');
  const first = await client(port);
  await first.until('the end');
  first.socket.write('hello\r');
  await first.until('hello\r\nm1> ');
  first.socket.destroy();
  let text = '';
  // The server may not have noticed yet that the first client has gone.
  await until('the log', async () => {
    const next = await client(port);
    await Promise.race([next.until('hello'), next.ended]);
    text = next.text();
    next.socket.destroy();
    return text.includes('hello');
  });
  expect(text).toHaveLength(1024);
  expect(text).toMatch(/^x+.*the end/s);
  expect(lines).toBe(1);
  await ipmiConsole.stop(task);
});
it('saves what the machine says while nobody looks, and a client sees it live too', async () => {
  const root = mkdtempSync(join(tmpdir(), 'console-logs-'));
  stops.push(async () => rmSync(root, { recursive: true }));
  const logs = createConsoleLogs({ root, inAll: 1 << 20, log: silentLog });
  const port = await freePort();
  const { task, serial } = await bench({ ipmi_terminal_port: port, console_saved_log_size: 1 }, {}, logs);
  const text = async (): Promise<string> => (await logs.read(task.node.uuid, undefined, 2000)).bytes.toString();
  await ipmiConsole.start(task);
  serial.log('before the line is open');
  await until('the saved text', async () => {
    serial.log('booting');
    return (await text()).includes('booting');
  });
  const first = await client(port);
  first.socket.write('hello\r');
  await first.until('hello\r\nm1> ');
  await until('the typed text', async () => (await text()).includes('hello'));
  await ipmiConsole.stop(task);
  serial.log('after the console was turned off');
  expect(await text()).not.toContain('turned off');
});
it('validate rejects a console_saved_log_size of 65537', async () => {
  const { task } = await bench({ ipmi_terminal_port: 1, console_saved_log_size: 65_537 });
  await expect(ipmiConsole.validate!(task)).rejects.toThrow('driver_info/console_saved_log_size: it must be a number of KiB up to 65536.');
});
it.each([-1, 2000, 'x'])('validate rejects console_log_size %j', async (size) => {
  const { task } = await bench({ ipmi_terminal_port: 1, console_log_size: size });
  await expect(ipmiConsole.validate!(task)).rejects.toThrow('set in driver_info/console_log_size: it must be a number of KiB up to 1024.');
});
it.each(['127.0.0.1', ''])('listens on loopback with socat_address %p', async (address) => {
  const port = await freePort();
  const { task } = await bench({ ipmi_terminal_port: port }, { 'console.socat_address': address });
  expect(optionsOf()['console.socat_address']).toBe('127.0.0.1');
  await ipmiConsole.start(task);
  expect(await ipmiConsole.get(task)).toEqual({ type: 'socat', url: `tcp://127.0.0.1:${port}` });
});
it.each<[JsonObject, object, string, string]>([
  [
    {},
    {},
    'MissingParameterValue',
    "Either missing 'ipmi_terminal_port' parameter in node's driver_info or [console]port_range is not configured",
  ],
  [
    { ipmi_terminal_port: 1, ipmi_protocol_version: '1.5' },
    {},
    'InvalidParameterValue',
    "Serial over lan only works with IPMI protocol version 2.0. Check the 'ipmi_protocol_version' parameter in node's driver_info",
  ],
  [{ ipmi_terminal_port: 'abc' }, {}, 'InvalidParameterValue', 'ipmi_terminal_port "abc" is not a valid port.'],
])('validate rejects driver_info %j with options %j like Ironic', async (info, options, name, message) => {
  const { task } = await bench(info, options);
  await expect(ipmiConsole.validate!(task)).rejects.toMatchObject({ name, message });
});
