// npm run bench -- image-cache: machines deploy one image from one conductor (image_download_source = local): bytes of the source, CPU.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { freePort } from '../../free-port.mjs';
import { ADDRESSES, DRIVERS, startFleet } from '../fleet.mjs';
import { measure } from '../measure.mjs';
import { through } from '../nodes.mjs';
import { lanes, writeImages } from '../work.mjs';

const MIB = 1 << 20;
/** The image repeats this piece, after a partition table. */
const PIECE = Buffer.alloc(MIB, 'bytes of an image ');
const FIRST = Buffer.from(PIECE).fill(0, 0, 512);
FIRST[450] = 0x83;
FIRST.writeUInt32LE(2048, 454);
FIRST.writeUInt32LE(2048, 458);
FIRST.writeUInt16LE(0xaa55, 510);

/** @param {number} from @param {number} to included */
function* contentOf(from, to) {
  for (let at = from; at <= to;) {
    const start = at % MIB;
    const bytes = (at < MIB ? FIRST : PIECE).subarray(start, Math.min(MIB, start + to + 1 - at));
    yield bytes;
    at += bytes.length;
  }
}

/**
 * A web server with one image. It counts what it sends.
 * @param {import('../server.mjs').Bench} bench
 * @param {number} size bytes
 */
async function startSource({ atEnd }, size) {
  const sent = { bytes: 0, whole: 0 };
  const server = createServer((request, response) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const [from, to] = range ? [Number(range[1]), Math.min(Number(range[2]), size - 1)] : [0, size - 1];
    response.writeHead(range ? 206 : 200, {
      'content-length': to + 1 - from,
      etag: '"image"',
      ...(range ? { 'content-range': `bytes ${from}-${to}/${size}` } : {}),
    });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    if (!range) sent.whole++;
    const counted = function* () {
      for (const bytes of contentOf(from, to)) {
        sent.bytes += bytes.length;
        yield bytes;
      }
    };
    pipeline(Readable.from(counted(), { objectMode: false }), response).catch(() => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { url: `http://127.0.0.1:${port}/image.raw`, sent };
}
/** @param {number} size */
function sha256Of(size) {
  const hash = createHash('sha256');
  for (const bytes of contentOf(0, size - 1)) hash.update(bytes);
  return hash.digest('hex');
}

/** @type {import('../scenarios.mjs').Scenario} */
export const imageCache = {
  nodes: 50,
  run: async (bench, { nodes: count, size: mebibytes = 256 }) => {
    const { folder } = bench;
    const size = mebibytes * MIB;
    const images = join(folder, 'httpboot');
    writeImages(images, MIB);
    const file = (/** @type {string} */ name) => `file://${join(images, name)}`;
    const source = await startSource(bench, size);
    const bootPort = await freePort();
    const bootUrl = `http://127.0.0.1:${bootPort}`;
    const all = await bench.begin({
      DEFAULT: { my_ip: '127.0.0.1', ...DRIVERS, enabled_deploy_interfaces: 'direct' },
      agent: { image_download_source: 'local' },
      conductor: { deploy_kernel: file('kernel'), deploy_ramdisk: file('ramdisk'), file_url_allowed_paths: folder, automated_clean: false },
      boot: { http_host: '127.0.0.1', http_port: bootPort, tftp: false },
    });
    const { server } = all;
    await startFleet(bench, [
      '--machines',
      String(count),
      ...ADDRESSES,
      '--boot-url',
      bootUrl,
      '--boot-ms',
      '2000',
      '--register',
      server.url,
    ]);
    /** @type {readonly string[]} */
    let uuids = [];
    for (const limit = performance.now() + 600_000; uuids.length < count && performance.now() < limit;) {
      /** @type {{ nodes: readonly { uuid: string }[] }} */
      const { nodes } = await server.ask('GET', `/v1/nodes?fields=uuid&limit=${count}`);
      uuids = nodes.map(({ uuid }) => uuid);
      if (uuids.length < count) await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const value = { image_source: source.url, image_os_hash_algo: 'sha256', image_os_hash_value: sha256Of(size) };
    for (const [target, end] of /** @type {const} */ ([
      ['manage', 'manageable'],
      ['provide', 'available'],
    ]))
      await through(server, uuids, target, end)();
    await lanes(16, uuids, (uuid) => server.ask('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value }]));
    await measure(`deployed, ${mebibytes} MiB by the cache`, all, through(server, uuids, 'active', 'active'));
    const times = (source.sent.bytes / size).toFixed(3);
    console.log(
      `the source sent ${source.sent.bytes} bytes, ${times} times the image, in ${source.sent.whole} whole responses for ${count} machines`,
    );
    if (source.sent.whole !== 1) throw new Error('the image was downloaded more than once');
  },
};
