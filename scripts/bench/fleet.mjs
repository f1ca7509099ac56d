// Simulated machines for the scenarios. Their BMCs and agents answer over the network, as real ones do.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../install.mjs';
import { openClient } from './client.mjs';
import { startProgram } from './processes.mjs';

/**
 * @typedef {Readonly<Record<string, unknown>>} Fields
 * @typedef {NonNullable<import('../../model/records.js').NodeRecord['power_state']>} PowerState
 * @typedef {{ name: string, driver: string, driver_info: Fields, resource_class: string, properties: Fields }} FleetNode in the file that
 *   `bloomery simulate --resources` writes
 * @typedef {import('./client.mjs').Client & { pid: number, nodes: readonly FleetNode[] }} Fleet
 */

/** The options of a server for them. */
export const DRIVERS = { enabled_hardware_types: 'ipmi,redfish', enabled_boot_interfaces: 'ipxe' };
export const ADDRESSES = ['--ipmi', '127.0.0.1', '--redfish', '127.0.0.1', '--seed', '1'];
/** Arguments for machines of which half have IPMI, half Redfish. @param {number} count */
export const halfAndHalf = (count) => ['--machines', String(count), '--bmcs', 'half', ...ADDRESSES];

/**
 * Starts `bloomery simulate` and waits until it is ready.
 * @param {import('./server.mjs').Bench} bench
 * @param {readonly string[]} words
 * @returns {Promise<Fleet>}
 */
export async function startFleet({ folder, atEnd, bind }, words) {
  const resources = join(folder, 'fleet.json');
  const program = [join(root, 'bin/bloomery'), 'simulate', ...words, '--resources', resources, '--control', '0', '--json'];
  const { pid, line } = await startProgram(program, /"control":"(http:[^"]+)"/, atEnd, { areErrorsShown: true });
  bind(pid, 1);
  /** @type {{ nodes: FleetNode[] }} */
  const { nodes } = JSON.parse(readFileSync(resources, 'utf8'));
  return { nodes, pid, ...(await openClient(line[1] ?? '', atEnd)) };
}
/** The resident memory of a process. @param {number} pid @returns MiB */
const memoryOf = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
/** @param {number} pid */
export const memoryText = (pid) => `${memoryOf(pid).toFixed(0)} MiB`;

/**
 * The record of a node for a simulated machine.
 * @param {FleetNode} node
 * @param {string} uuid
 * @param {PowerState} power_state
 * @returns {Parameters<import('../../store/store.js').Store['nodes']['create']>[0]}
 */
export const activeNode = ({ name, driver, driver_info, resource_class, properties }, uuid, power_state) => {
  const kind = driver === 'ipmi' ? 'ipmitool' : driver;
  return {
    uuid,
    name,
    driver,
    driver_info,
    resource_class,
    properties,
    power_state,
    provision_state: 'active',
    power_interface: kind,
    management_interface: kind,
    boot_interface: 'ipxe',
    deploy_interface: 'direct',
    network_interface: 'noop',
  };
};
