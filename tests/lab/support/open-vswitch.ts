/** Open vSwitch in the namespace of a lab, all in user space: its own database and daemon, with VLANs and LACP that the kernel need not have. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { until, type Lab } from './machines';

export interface OpenVSwitch {
  /** ovs-vsctl. */
  control(...words: readonly string[]): Promise<string>;
  /** An interface of the host in a VLAN, with these addresses (with the lengths of their prefixes). */
  host(name: string, vlan: number, addresses: readonly string[]): Promise<void>;
  /** A tap device for a machine, which belongs to no port yet. */
  tap(name: string): Promise<void>;
}
const SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema';
const PATIENCE = 120;

/** Its processes end with the lab. */
export async function startOpenVSwitch(lab: Lab, bridge: string): Promise<OpenVSwitch> {
  const folder = join(lab.folder, 'openvswitch');
  mkdirSync(folder);
  const [database, socket] = [join(folder, 'conf.db'), join(folder, 'db.sock')];
  const environment = ['env', `OVS_RUNDIR=${folder}`, `OVS_LOGDIR=${folder}`];
  await lab.exec('ovsdb-tool', 'create', database, SCHEMA);
  lab.start(...environment, 'ovsdb-server', database, `--remote=punix:${socket}`, '--log-file');
  await until(
    PATIENCE,
    () => 'ovsdb-server to listen',
    () => existsSync(socket),
  );
  const control = (...words: readonly string[]): Promise<string> => lab.exec('ovs-vsctl', `--db=unix:${socket}`, '--timeout=60', ...words);
  await control('--no-wait', 'init');
  lab.start(...environment, 'ovs-vswitchd', `unix:${socket}`, '--log-file');
  await control('add-br', bridge, '--', 'set', 'bridge', bridge, 'datapath_type=netdev');
  return {
    control,
    host: async (name, vlan, addresses) => {
      await control('add-port', bridge, name, `tag=${vlan}`, '--', 'set', 'interface', name, 'type=internal');
      for (const address of addresses)
        await lab.exec('ip', 'addr', 'add', address, 'dev', name, ...(address.includes(':') ? ['nodad'] : []));
      await lab.exec('ip', 'link', 'set', name, 'up');
    },
    tap: async (name) => {
      await lab.exec('ip', 'tuntap', 'add', name, 'mode', 'tap');
      await lab.exec('ip', 'link', 'set', name, 'up');
    },
  };
}
