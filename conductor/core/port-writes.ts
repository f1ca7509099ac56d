/** How a task writes its node's ports and portgroups: under the node's reservation, like all its writes. */
import { randomUUID } from 'node:crypto';
import { defined } from '../../model/json';
import type { JsonObject, PortgroupRecord, PortRecord } from '../../model/records';
import type { Store } from '../../store/store';
import type { NodeTask } from './node-task';

interface PortWriteParts {
  /** Writes in one transaction, if the task still holds the node. */
  readonly put: (write: (store: Store) => Promise<void>) => Promise<void>;
  /** The ports of the task. */
  readonly ports: () => readonly PortRecord[];
  /** Replaces the ports of the task. */
  readonly keep: (ports: readonly PortRecord[]) => void;
}

export const portWrites = (
  node: string,
  { put, ports, keep }: PortWriteParts,
): Pick<NodeTask, 'saveAttachment' | 'groupPorts' | 'ungroupPorts'> => ({
  saveAttachment: async (kind, carrier, keys) => {
    const infoOf = (info: JsonObject): JsonObject => defined({ ...info, ...keys });
    await put(async (store) => {
      if (kind === 'portgroup') {
        await store.portgroups.update(carrier, { internal_info: infoOf((await store.portgroups.find(carrier)).internal_info) });
        return;
      }
      const changed = await store.ports.update(carrier, { internal_info: infoOf((await store.ports.find(carrier)).internal_info) });
      keep(ports().map((port) => (port.uuid === carrier ? changed : port)));
    });
  },
  groupPorts: async (group, members) => {
    const uuid = randomUUID();
    let made: PortgroupRecord | undefined;
    await put(async (store) => {
      made = await store.portgroups.create({ ...group, uuid, node_uuid: node });
      for (const member of members) await store.ports.update(member, { portgroup_uuid: uuid });
    });
    keep(ports().map((port) => (members.includes(port.uuid) ? { ...port, portgroup_uuid: uuid } : port)));
    return made!;
  },
  ungroupPorts: async (group) => {
    await put(async (store) => {
      for (const port of ports()) if (port.portgroup_uuid === group) await store.ports.update(port.uuid, { portgroup_uuid: null });
      await store.portgroups.remove(group);
    });
    keep(ports().map((port) => (port.portgroup_uuid === group ? { ...port, portgroup_uuid: null } : port)));
  },
});
