/** QEMU's monitor (QMP): JSON lines on a Unix socket, with answers in the order of the commands, and events among them. */
import type { Socket } from 'node:net';
import { isObject } from '../../model/json';

export interface QemuMonitor {
  /** Rejects with QEMU's error, or when QEMU does not answer. */
  execute(command: string, args?: object): Promise<void>;
}
const ANSWER_TIMEOUT_MS = 10_000;
/** The most characters of an incomplete line. QEMU's greeting and events have fewer than 1,000. */
const MAX_LINE = 1 << 20;

/** @param onEvent called with an event's name and data */
export async function openMonitor(
  socket: Socket,
  onEvent: (name: string, data: Readonly<Record<string, unknown>>) => void,
): Promise<QemuMonitor> {
  const waiting: { readonly done: () => void; readonly fail: (error: Error) => void }[] = [];
  let text = '';
  const take = (line: string): void => {
    const message: unknown = JSON.parse(line);
    if (!isObject(message)) return;
    if (typeof message['event'] === 'string') onEvent(message['event'], isObject(message['data']) ? message['data'] : {});
    else if ('return' in message) waiting.shift()?.done();
    else if (isObject(message['error'])) waiting.shift()?.fail(new Error(`QEMU: ${String(message['error']['desc'])}`));
  };
  socket.setEncoding('utf8');
  socket.on('data', (part: string) => {
    text += part;
    const lines = text.split('\n');
    text = lines.pop()!;
    try {
      for (const line of lines) if (line.trim() !== '') take(line);
      if (text.length > MAX_LINE) throw new Error('a line is too long');
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    for (const { fail } of waiting.splice(0)) fail(new Error('QEMU has ended'));
  });
  const execute: QemuMonitor['execute'] = (command, args = {}) =>
    new Promise((done, fail) => {
      if (socket.destroyed) {
        fail(new Error('QEMU has ended'));
        return;
      }
      const late = setTimeout(() => socket.destroy(new Error('QEMU does not answer')), ANSWER_TIMEOUT_MS);
      const settle = (finish: () => void): void => {
        clearTimeout(late);
        finish();
      };
      waiting.push({ done: () => settle(done), fail: (error) => settle(() => fail(error)) });
      socket.write(`${JSON.stringify({ execute: command, arguments: args })}\n`);
    });
  await execute('qmp_capabilities');
  return { execute };
}
