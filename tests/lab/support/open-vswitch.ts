/**
 * Open vSwitch in the namespace of a lab, all in user space: its own database and daemon. So the kernel needs no support for VLANs and
 * LACP.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { until, type Lab } from '../../../demo/lab/machines';

export interface OpenVSwitch {
  /** Runs ovs-vsctl. */
  control(...words: readonly string[]): Promise<string>;
  /** Makes an interface of the host in a VLAN, with these addresses (each with the length of its prefix). */
  host(name: string, vlan: number, addresses: readonly string[]): Promise<void>;
  /** Makes a tap device for a machine, which is not yet a port of the bridge. */
  tap(name: string): Promise<void>;
}
const SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema';
const PATIENCE = 120;

/** The processes end with the lab. */
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
