/** Cinder in memory: the actions on volumes with the statuses, errors and answers of a real Cinder 29, which tests/openstack compares. */
import { randomUUID } from 'node:crypto';
import { ServiceError, type ServiceCall, type ServiceClient } from '../../../wire/keystone/services';
import type { Cinder } from '../cinder-cases';

interface Volume {
  status: string;
  metadata: Record<string, string>;
  attachments: { readonly attachment_id: string; readonly server_id: string }[];
}
const refused = (status: number, message: string): ServiceError =>
  new ServiceError('cinder', 'failing', `HTTP status ${status}: ${message}`, status);

type Action = (volume: Volume, args: Readonly<Record<string, unknown>>, id: string) => unknown;
const ACTIONS: Readonly<Record<string, Action>> = {
  'os-reserve': (volume) => {
    if (volume.status !== 'available')
      throw refused(400, `Invalid volume: Volume status must be available to reserve, but the status is ${volume.status}.`);
    volume.status = 'attaching';
  },
  'os-unreserve': (volume) => {
    if (volume.status === 'attaching') volume.status = 'available';
  },
  'os-initialize_connection': (_volume, { connector }, id) => ({
    connection_info: {
      driver_volume_type: 'iscsi',
      data: {
        target_iqn: `iqn.2026-01.org.example:${id}`,
        target_portal: '192.0.2.5:3260',
        target_lun: 1,
        auth_method: 'CHAP',
        auth_username: (connector as { host: string }).host,
        auth_password: 'chap-secret',
      },
    },
  }),
  'os-attach': (volume, { instance_uuid: server }) => {
    volume.status = 'in-use';
    volume.attachments.push({ attachment_id: randomUUID(), server_id: String(server) });
  },
  'os-begin_detaching': (volume) => {
    if (volume.status !== 'in-use')
      throw refused(
        400,
        "Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status must be 'attached' to detach.",
      );
    volume.status = 'detaching';
  },
  'os-terminate_connection': () => undefined,
  'os-detach': (volume, { attachment_id: id }) => {
    if (!volume.attachments.some(({ attachment_id: known }) => known === id))
      throw refused(409, 'ConflictNovaUsingAttachment: Detach volume from instance  using the Compute API');
    volume.attachments = volume.attachments.filter(({ attachment_id: known }) => known !== id);
    volume.status = 'available';
  },
};

export function cinderInMemory(): Cinder {
  const volumes = new Map<string, Volume>();
  const answer = (path: string, { body, accept = [] }: ServiceCall): { readonly status: number; readonly body: unknown } => {
    const [, id = '', what] = /^\/volumes\/([\da-f-]{36})(?:\/(action|metadata))?$/.exec(path) ?? [];
    const volume = volumes.get(id);
    if (!volume) {
      const message = `Volume ${id} could not be found.`;
      if (!accept.includes(404)) throw refused(404, message);
      return { status: 404, body: { itemNotFound: { code: 404, message } } };
    }
    if (what === 'metadata') {
      const { metadata } = body as { metadata: Record<string, string> };
      volume.metadata = { ...volume.metadata, ...metadata };
      return { status: 200, body: { metadata: volume.metadata } };
    }
    if (what !== 'action') return { status: 200, body: { volume: { id, ...volume } } };
    const [[action, args]] = Object.entries(body as object) as [[string, unknown]];
    const result = ACTIONS[action]!(volume, (args ?? {}) as Readonly<Record<string, unknown>>, id);
    return result === undefined ? { status: 202, body: undefined } : { status: 200, body: result };
  };
  const client: ServiceClient = {
    stream: async () => Promise.reject(new Error('no streams here')),
    upload: async () => Promise.reject(new Error('no uploads here')),
    projectId: async () => undefined,
    isConfigured: true,
    endpoint: async () => 'http://cinder',
    request: async (path, call = {}) => ({ headers: {}, ...answer(path, call) }),
    close: async () => {},
  };
  return {
    client,
    create: async () => {
      const id = randomUUID();
      volumes.set(id, { status: 'available', metadata: {}, attachments: [] });
      return id;
    },
    look: async (id) => {
      const { status, attachments, metadata } = volumes.get(id)!;
      return { status, attachments: attachments.length, metadata };
    },
  };
}
