import { once } from 'node:events';
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { openMonitor } from '../../../simulator/qemu/monitor';

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0)) step();
});

/** A monitor, and QEMU's end of its socket, which passes each line to `answer`. */
async function monitor(answer: (line: string, qemu: Socket) => void) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [qemu] = (await once(server, 'connection')) as [Socket];
  server.close();
  qemu.on('error', () => {});
  undo.push(() => [client, qemu].forEach((socket) => socket.destroy()));
  qemu.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.split('\n').filter(Boolean)) answer(line, qemu);
  });
  qemu.write('{"QMP": {}}\r\n');
  const events: unknown[] = [];
  return { events, opened: openMonitor(client, (name, data) => events.push([name, data])) };
}

it('openMonitor matches responses to commands among events and split lines', async () => {
  const { events, opened } = await monitor((line, qemu) => {
    const { execute } = JSON.parse(line) as { readonly execute: string };
    if (execute === 'bad') qemu.write('{"error": {"class": "CommandNotFound", "desc": "no such command"}}\r\n');
    else {
      qemu.write('{"event": "SHUTDOWN", "data": {"reason": "guest-');
      setImmediate(() => qemu.write('reset"}}\r\n{"return": {}}\r\n'));
    }
  });
  const qemu = await opened;
  await qemu.execute('good');
  await expect(qemu.execute('bad')).rejects.toThrow('QEMU: no such command');
  expect(events).toEqual(Array(2).fill(['SHUTDOWN', { reason: 'guest-reset' }]));
});

it.each([
  ['closes the connection', (qemu: Socket) => qemu.destroy()],
  ['sends invalid JSON', (qemu: Socket) => qemu.write('what?\r\n')],
  ['never ends a line', (qemu: Socket) => qemu.write('x'.repeat(1_100_000))],
])('execute fails when QEMU %s', async (_, act) => {
  const { opened } = await monitor((line, qemu) => {
    if (line.includes('capabilities')) qemu.write('{"return": {}}\n');
    else act(qemu);
  });
  const qemu = await opened;
  await expect(qemu.execute('system_powerdown')).rejects.toThrow('QEMU has ended');
  await expect(qemu.execute('system_powerdown')).rejects.toThrow('QEMU has ended');
});
