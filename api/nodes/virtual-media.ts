/** /v1/nodes/X/vmedia. */
import type { VirtualMediaType } from '../../conductor/conductor';
import { invalid } from '../../model/errors';
import { nodeOf, onNode } from '../pipeline/node-find';
import type { SomeHandlers } from '../pipeline/handler';

const DEVICES: readonly VirtualMediaType[] = ['disk', 'cdrom', 'floppy'];
const isDevice = (word: string): word is VirtualMediaType => DEVICES.some((device) => device === word);
const SCHEMES: readonly string[] = ['http', 'https', 'nfs', 'cifs', 'smb'];

/** RFC 3986 §3.1, in lower case; '' for none. */
const schemeOf = (url: string): string => /^([a-z][a-z\d+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? '';

export const virtualMediaHandlers = {
  showVirtualMedia: onNode(({ uuid }, _, { conductor }) => conductor.getVirtualMedia(uuid)),
  attachVirtualMedia: async (request, context) => {
    const { device_type: device, image_url: url, image_download_source: source = 'local' } = request.body;
    const scheme = schemeOf(url);
    if (!SCHEMES.includes(scheme)) throw invalid(`Unsupported or missing URL scheme: ${scheme}`);
    const node = await nodeOf(request, context, 'node:vmedia:attach');
    await context.conductor.attachVirtualMedia(node.uuid, device, url, source === 'local' ? 'local' : 'http');
    return { status: 204 };
  },
  detachVirtualMedia: async (request, context) => {
    const devices = request.query.device_types ?? null;
    const known = devices?.filter(isDevice) ?? null;
    const unknown = (devices ?? []).filter((device) => !isDevice(device));
    if (unknown.length > 0) throw invalid(`Invalid device type(s) ${unknown.join(', ')} (valid are ${DEVICES.join(', ')})`);
    const node = await nodeOf(request, context, 'node:vmedia:detach');
    await context.conductor.detachVirtualMedia(node.uuid, known);
    return { status: 204 };
  },
} satisfies SomeHandlers;
