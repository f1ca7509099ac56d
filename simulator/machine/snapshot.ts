/** Sends a snapshot as the agent does. The file has the record of the disk, in place of the disk. */
import { AgentError } from '../../model/agent/errors';
import type { InventoryDisk, JsonObject } from '../../model/records';
import { digestOfParts, sha256 } from '../../wire/snapshot-files';
import type { HttpClient } from '../http';
import type { DiskContent } from './image';

/** The parts of an agent and its machine that a snapshot needs. */
interface SnapshotHost {
  readonly http: HttpClient;
  readonly signal: AbortSignal;
  contentOf(disk: string): DiskContent | undefined;
  /** The API and the token of the agent; undefined: it has none yet. */
  api(): { readonly url: string; readonly token: string } | undefined;
}

const HEADER_LENGTH = 104;
/** The end of the header's extensions. */
const NO_EXTENSIONS = 8;
/** The header of a qcow2 file of this size. Nothing reads more of the file than that. */
function headerOf(diskSize: number): Buffer {
  const header = Buffer.alloc(HEADER_LENGTH + NO_EXTENSIONS);
  header.write('QFI\xfb', 'latin1');
  header.writeUInt32BE(3, 4);
  header.writeUInt32BE(16, 20);
  header.writeBigUInt64BE(BigInt(diskSize), 24);
  header.writeUInt32BE(HEADER_LENGTH, 100);
  return header;
}

/** @throws AgentError when the server refuses a part */
export async function sendSnapshot(host: SnapshotHost, uuid: string, disk: InventoryDisk): Promise<JsonObject> {
  const api = host.api();
  if (!api) throw new AgentError('ServicingError', 'the agent has no token for the API');
  const front = headerOf(disk.size);
  const data = Buffer.from(`${disk.name}: ${host.contentOf(disk.name)?.sha256 ?? 'empty'}\n`);
  const send = async (bytes: Buffer, position: number, progress: number): Promise<Buffer> => {
    const digest = await sha256(bytes);
    const answer = await host.http.request(`${api.url}/v1/snapshots/${uuid}/parts/${position}?progress=${progress}`, {
      method: 'PUT',
      headers: {
        'content-type': 'application/octet-stream',
        'content-digest': `sha-256=:${digest.toString('base64')}:`,
        'x-agent-token': api.token,
      },
      bytes,
      signal: host.signal,
    });
    const text = await answer.text();
    if (answer.status !== 204) throw new AgentError('ServicingError', `Sending the snapshot failed: ${answer.status}: ${text}`);
    return digest;
  };
  const digests = [await send(data, front.length, 50), await send(front, 0, 100)];
  const size = front.length + data.length;
  return { size, front: front.length, digest: digestOfParts(digests), disk: disk.name, disk_size: disk.size };
}
