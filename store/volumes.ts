/** The volume connectors and targets of nodes, for drivers and boot services. */
import type { Volumes } from '../model/records';
import type { Store } from './store';

export type VolumeStore = Pick<Store, 'volumeConnectors' | 'volumeTargets'>;

export const volumesOf = ({ volumeConnectors, volumeTargets }: VolumeStore): Volumes => ({
  targets: async (node) => (await volumeTargets.list({ where: { node_uuid: node } })).toSorted((a, b) => a.boot_index - b.boot_index),
  connectors: (node) => volumeConnectors.list({ where: { node_uuid: node } }),
  saveProperties: async (target, properties) => void (await volumeTargets.update(target, { properties })),
  removeTargets: async (node) => {
    for (const { uuid } of await volumeTargets.list({ where: { node_uuid: node } })) await volumeTargets.remove(uuid);
  },
});
