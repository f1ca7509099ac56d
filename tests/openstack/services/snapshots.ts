/** Files of snapshots in a real Glance: made by our agent's writer, stored for another project, interrupted, replaced and deleted. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keepInGlance } from '../../../drivers/common/snapshot-glance';
import { silentLog } from '../../../model/log';
import type { SnapshotRecord } from '../../../model/records';
import { compressionFor } from '../../../ramdisk-agent/disk/compression';
import { streamedImage } from '../../../ramdisk-agent/disk/qcow2-image';
import { deleteImage } from '../../../wire/openstack/glance';
import { servicesOf } from '../../support/services';
import type { RealGlance } from './glance';
import type { RealKeystone } from './keystone';
import { clientSection } from './service';

const DISK_BYTES = 24 * 2 ** 20;

/** Glance looks at the content of an image, and refuses one of another format. */
async function qcow2File(path: string): Promise<Pick<SnapshotRecord, 'sha256' | 'size'>> {
  const disk = randomBytes(DISK_BYTES);
  const read = async (position: number, length: number): Promise<Buffer> => disk.subarray(position, position + length);
  const making = { compression: await compressionFor(silentLog), signal: new AbortController().signal, progress: () => {} };
  const pieces: (readonly [number, Buffer])[] = [];
  for await (const [at, piece] of streamedImage({ path: 'disk', size: disk.length, read }, making)) pieces.push([at, Buffer.from(piece)]);
  const bytes = Buffer.alloc(Math.max(...pieces.map(([at, piece]) => at + piece.length)));
  for (const [at, piece] of pieces) piece.copy(bytes, at);
  writeFileSync(path, bytes);
  return { size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** @param folder for a file */
export async function tryGlanceOfSnapshots(folder: string, keystone: RealKeystone, glance: RealGlance): Promise<void> {
  const { identity } = keystone;
  const [owner, service] = [await identity.project('tenant of a snapshot'), await identity.project('service')];
  await identity.user('snapshots', { [service]: ['admin', 'service'] });
  const section = {
    ...clientSection(keystone, 'snapshots'),
    timeout: 600,
    service_type: 'image',
    valid_interfaces: ['internal', 'public'],
  };
  const client = servicesOf(Object.fromEntries(Object.entries(section).map(([name, value]) => [`glance.${name}`, value]))).glance;
  const path = join(folder, 'snapshot.qcow2');
  const snapshot = {
    ...(await qcow2File(path)),
    uuid: randomUUID(),
    node_uuid: randomUUID(),
    node_name: 'node',
    owner,
    description: null,
    public: false,
    image_id: null as string | null,
  } as SnapshotRecord;
  let id = '';
  const remember = async (made: string): Promise<void> => {
    id = made;
  };
  const { signal } = new AbortController();
  const given = { glance: client, path, signal, remember, newId: randomUUID };
  const isGone = (image: string) => expect(glance.call('GET', `/v2/images/${image}`)).rejects.toThrow('404');
  try {
    await keepInGlance({ ...given, snapshot });
    const whole = id;
    expect(await glance.call('GET', `/v2/images/${whole}`)).toMatchObject({
      status: 'active',
      owner,
      visibility: 'private',
      disk_format: 'qcow2',
      size: snapshot.size,
      bloomery_snapshot: snapshot.uuid,
    });
    await keepInGlance({ ...given, snapshot: { ...snapshot, image_id: whole } });
    expect(id).toBe(whole);
    await deleteImage(client, whole, { signal });
    await deleteImage(client, whole, { signal });
    // A conductor that is killed during an upload leaves an image, which the next attempt replaces.
    const killed = new AbortController();
    const cut: typeof client = {
      ...client,
      upload: async (...args) => {
        args[1].body.once('data', () => killed.abort());
        return client.upload(...args);
      },
    };
    await expect(keepInGlance({ ...given, glance: cut, signal: killed.signal, snapshot })).rejects.toThrow();
    const left = id;
    await keepInGlance({ ...given, snapshot: { ...snapshot, public: true, image_id: left } });
    await isGone(left);
    expect(await glance.call('GET', `/v2/images/${id}`)).toMatchObject({ status: 'active', visibility: 'public' });
    await deleteImage(client, id, { signal });
    await isGone(id);
  } finally {
    await client.close();
  }
}
