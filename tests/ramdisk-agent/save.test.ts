import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { silentLog } from '../../model/log';
import { readSaveArguments } from '../../model/agent/save-arguments';
import { saveDisk } from '../../ramdisk-agent/disk/save';
import { qcow2Writer } from '../../ramdisk-agent/formats/qcow2';
import { fileDevice } from './support';

const MiB = 2 ** 20;
const noWait = { now: () => 0, sleep: async () => {} };

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
  return Buffer.concat(parts);
}
/** A web server that answers with these statuses, the last one again and again. `cut`: it closes the connection instead. */
async function webServer<T>(
  answers: readonly (number | 'cut')[],
  work: (base: string, files: Map<string, Buffer>) => Promise<T>,
): Promise<T> {
  const files = new Map<string, Buffer>();
  let asked = 0;
  const server = createServer((request, response) => {
    const answer = answers[Math.min(asked++, answers.length - 1)]!;
    if (answer === 'cut') {
      request.once('data', () => request.socket.destroy());
      return;
    }
    void bodyOf(request).then((body) => {
      if (answer < 300) files.set(request.url!, body);
      response.writeHead(answer).end(answer < 300 ? '' : 'no room');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, files);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
async function save(base: string, percents: number[] = []) {
  const device = await fileDevice(12 * MiB);
  const content = randomBytes(3 * MiB);
  await device.write(content, 2 * MiB);
  const saved = saveDisk({
    device,
    url: `${base}/disk.qcow2?signature=secret`,
    checksumUrl: `${base}/disk.qcow2.sha256`,
    fetching: { trust: { insecure: false }, timeoutMs: 5000, signal: new AbortController().signal },
    retries: 2,
    retryIntervalMs: 1,
    progress: (percent) => percents.push(percent),
    clock: noWait,
    log: silentLog,
  });
  return { content, ...(await saved) };
}

it('sends an image of the disk, and its checksum', async () => {
  await webServer([201], async (base, files) => {
    const percents: number[] = [];
    const { content, size, sha256 } = await save(base, percents);
    const file = files.get('/disk.qcow2?signature=secret')!;
    expect(file.length).toBe(size);
    expect(createHash('sha256').update(file).digest('hex')).toBe(sha256);
    expect(files.get('/disk.qcow2.sha256')!.toString()).toBe(`${sha256}  disk.qcow2\n`);
    expect(percents.at(-1)).toBe(100);

    const written = Buffer.alloc(12 * MiB);
    const writer = qcow2Writer({ size: written.length, write: async (bytes, at) => written.set(bytes, at), zero: async () => {} });
    await writer.take(file);
    expect(await writer.end()).toBe('done');
    expect(written.subarray(2 * MiB, 5 * MiB).equals(content)).toBe(true);
  });
});

it('sends the image again after faults of the network and the server', async () => {
  await webServer(['cut', 503, 200], async (base, files) => {
    const { size } = await save(base);
    expect(files.get('/disk.qcow2?signature=secret')!.length).toBe(size);
  });
});

it('fails with the answer of a server that refuses the image, without the signature', async () => {
  await webServer([403], async (base) => {
    await expect(save(base)).rejects.toThrow(`Sending the image to ${base}/disk.qcow2 failed: it answered 403: no room`);
  });
});

it('fails after the last attempt', async () => {
  await webServer(['cut'], async (base, files) => {
    await expect(save(base)).rejects.toThrow(/^.*Sending the image to .* failed: /);
    expect(files.size).toBe(0);
  });
});

it.each([
  ['no URL', {}, 'url must be a URL (http, https)'],
  ['another scheme', { url: 'ftp://192.0.2.1/x' }, 'url must be a URL (http, https)'],
  ['a login', { url: 'http://user:secret@192.0.2.1/x' }, 'url must have no login'],
  ['a URL of a checksum that is none', { url: 'http://192.0.2.1/x', checksum_url: 7 }, 'checksum_url must be a URL'],
  ['an unknown hint', { url: 'http://192.0.2.1/x', root_device: { colour: 'red' } }, 'root_device '],
])('refuses %s', (_, args, problem) => {
  expect(() => readSaveArguments(args)).toThrow(problem);
});
