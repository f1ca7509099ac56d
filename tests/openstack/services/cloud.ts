/** Keystone, Neutron with the networks of all phases, and Glance with an image: what a bare metal server needs of an OpenStack. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startMariadb, type RealMariadb } from '../../lab/support/mariadb';
import type { Sections } from '../../../demo/lab/server';
import { newImageBytes } from './boot-files';
import { startGlance, type RealGlance } from './glance';
import { CACHED, startKeystone, type RealKeystone } from './keystone';
import { startNeutron, type RealNeutron, type Switches } from './neutron';
import { clientSection, tokenSection } from './service';

/** Network → its VLAN. Servers are in `private`, and machines that boot a ramdisk in the others. */
export const VLANS = { provisioning: 100, private: 101, cleaning: 102, rescuing: 103, inspection: 104, servicing: 105 } as const;
type NetworkName = keyof typeof VLANS;

export interface Cloud {
  /** Services that write at the same time need more than SQLite. */
  readonly mariadb: RealMariadb;
  readonly keystone: RealKeystone;
  readonly neutron: RealNeutron;
  readonly glance: RealGlance;
  /** Name → ID. */
  readonly networks: Readonly<Record<NetworkName, string>>;
  /** A user of the Bare Metal API whose token has the scope of the system. */
  systemToken(): Promise<string>;
  /** The sections of a bare metal server in this cloud. */
  readonly sections: Sections;
  close(): Promise<void>;
}

export async function makeNetworks(neutron: RealNeutron): Promise<Record<NetworkName, string>> {
  const networks: Partial<Record<NetworkName, string>> = {};
  for (const [name, vlan] of Object.entries(VLANS))
    networks[name as NetworkName] = await neutron.network(name, vlan, { ip_version: 4, cidr: `10.60.${vlan}.0/24` });
  return networks as Record<NetworkName, string>;
}

/**
 * @param folder of its own
 * @param switches further switches of Neutron
 */
export async function startCloud(folder: string, switches: Switches = {}): Promise<Cloud> {
  const own = (name: string): string => {
    mkdirSync(join(folder, name), { recursive: true });
    return join(folder, name);
  };
  // The programs outlive this process unless they are ended, also after a failure.
  const running: { close(): Promise<void> }[] = [];
  const close = async (): Promise<void> => {
    for (const item of running.splice(0).reverse()) await item.close();
  };
  const started = async <T extends { close(): Promise<void> }>(service: Promise<T>): Promise<T> => {
    const one = await service;
    running.push(one);
    return one;
  };
  /** Both, or the first failure after both have ended. */
  const both = async <A, B>(left: Promise<A>, right: Promise<B>): Promise<[A, B]> => {
    await Promise.allSettled([left, right]);
    return Promise.all([left, right]);
  };
  try {
    const [mariadb, keystone] = await both(started(startMariadb(own('mariadb'))), started(startKeystone(own('keystone'), CACHED)));
    const [neutron, glance] = await both(
      started(startNeutron(own('neutron'), keystone, await mariadb.create('neutron'), switches)),
      started(startGlance(own('glance'), keystone, await mariadb.create('glance'))),
    );
    const operator = await keystone.identity.user('operator', { system: ['admin'] });
    const ironic = clientSection(keystone, 'ironic');
    return {
      mariadb,
      keystone,
      neutron,
      glance,
      close,
      networks: await makeNetworks(neutron),
      systemToken: () => keystone.identity.token(operator, { system: { all: true } }),
      sections: {
        keystone_authtoken: tokenSection(keystone, 'ironic', 'baremetal'),
        glance: ironic,
        service_catalog: ironic,
        nova: ironic,
        neutron: {
          ...ironic,
          provisioning_network: 'provisioning',
          cleaning_network: 'cleaning',
          rescuing_network: 'rescuing',
          inspection_network: 'inspection',
          servicing_network: 'servicing',
        },
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** An image of random bytes in Glance. */
export async function newImage(glance: RealGlance, name: string): Promise<{ readonly id: string; readonly bytes: Buffer }> {
  const bytes = newImageBytes();
  return { id: await glance.image({ name, disk_format: 'raw', visibility: 'public' }, bytes), bytes };
}
