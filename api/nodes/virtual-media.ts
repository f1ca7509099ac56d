/** /v1/nodes/X/vmedia. */
import type { VirtualMediaType } from '../../conductor/conductor';
import { invalid } from '../../model/errors';
import { nodeOf } from '../resource/node-find';
import type { Handlers } from '../resource/handler';

const DEVICES: readonly string[] = ['disk', 'cdrom', 'floppy'];
const SCHEMES: readonly string[] = ['http', 'https', 'nfs', 'cifs', 'smb'];

/** RFC 3986 §3.1, in lower case; '' for none. */
const schemeOf = (url: string): string => /^([a-z][a-z\d+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? '';

export const virtualMediaHandlers: Handlers = {
  showVirtualMedia: async (request, context) => {
    const node = await nodeOf(request, context, 'node:vmedia:get');
    return { status: 200, body: await context.conductor.getVirtualMedia(node.uuid) };
  },
  attachVirtualMedia: async (request, context) => {
    const {
      device_type: device,
      image_url: url,
      image_download_source: source = 'local',
    } = request.body as {
      readonly device_type: VirtualMediaType;
      readonly image_url: string;
      readonly image_download_source?: 'http' | 'local' | 'swift';
    };
    const scheme = schemeOf(url);
    if (!SCHEMES.includes(scheme)) throw invalid(`Unsupported or missing URL scheme: ${scheme}`);
    const node = await nodeOf(request, context, 'node:vmedia:attach');
    await context.conductor.attachVirtualMedia(node.uuid, device, url, source === 'local' ? 'local' : 'http');
    return { status: 204 };
  },
  detachVirtualMedia: async (request, context) => {
    const devices = (request.query['device_types'] as readonly string[] | null | undefined) ?? null;
    const unknown = (devices ?? []).filter((device) => !DEVICES.includes(device));
    if (unknown.length > 0) throw invalid(`Invalid device type(s) ${unknown.join(', ')} (valid are ${DEVICES.join(', ')})`);
    const node = await nodeOf(request, context, 'node:vmedia:detach');
    await context.conductor.detachVirtualMedia(node.uuid, devices as readonly VirtualMediaType[] | null);
    return { status: 204 };
  },
};
