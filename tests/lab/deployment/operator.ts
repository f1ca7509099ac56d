/**
 * What an operator does with a node: by the openstack CLI, or by requests, which cost less processor time than a process of Python for
 * each.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Inventory, JsonObject } from '../../../model/records';
import { call } from '../inspection/inspect-machine';
import type { Cli } from '../support/cli';
import type { Lab } from '../../../demo/lab/machines';

interface NewNode {
  readonly name: string;
  readonly driver: string;
  readonly boot_interface: string;
  readonly driver_info: Readonly<Record<string, string | number | boolean>>;
  readonly properties: Readonly<Record<string, string>>;
}
export interface Operator {
  create(node: NewNode, mac: string): Promise<void>;
  setAutomatedClean(name: string, isOn: boolean): Promise<void>;
  setInstance(name: string, info: Readonly<Record<string, string>>): Promise<void>;
  provision(name: string, verb: 'manage' | 'inspect' | 'provide' | 'undeploy'): Promise<void>;
  deploy(name: string, configdrive: JsonObject): Promise<void>;
  inventory(name: string): Promise<Inventory>;
  powerOff(name: string): Promise<void>;
  delete(name: string): Promise<void>;
  /** The error when a client shows the node; '' if there is none. */
  showError(name: string): Promise<string>;
}

const optionsOf = (option: string, values: object): string[] =>
  Object.entries(values).flatMap(([key, value]) => [option, `${key}=${value}`]);
export const cliOperator = (cli: Cli, folder: string): Operator => ({
  create: async ({ name, driver, boot_interface: boot, driver_info: info, properties }, mac) => {
    const more = [...optionsOf('--driver-info', info), ...optionsOf('--property', properties)];
    await cli.run('node', 'create', '--name', name, '--driver', driver, '--boot-interface', boot, ...more);
    await cli.run('port', 'create', '--node', (await cli.json('node', 'show', name))['uuid'] as string, mac);
  },
  setAutomatedClean: async (name, isOn) => {
    await cli.run('node', 'set', name, isOn ? '--automated-clean' : '--no-automated-clean');
  },
  setInstance: async (name, info) => {
    await cli.run('node', 'set', name, ...optionsOf('--instance-info', info));
  },
  provision: async (name, verb) => {
    await cli.run('node', verb, name);
  },
  deploy: async (name, configdrive) => {
    await cli.run('node', 'deploy', name, '--config-drive', JSON.stringify(configdrive));
  },
  inventory: async (name) => {
    const saved = join(folder, `${name}-inventory.json`);
    await cli.run('node', 'inventory', 'save', name, '--file', saved);
    return (JSON.parse(readFileSync(saved, 'utf8')) as { readonly inventory: Inventory }).inventory;
  },
  powerOff: async (name) => {
    await cli.run('node', 'power', 'off', name);
  },
  delete: async (name) => {
    await cli.run('node', 'delete', name);
  },
  showError: async (name) => (await cli.attempt('node', 'show', name)).errors,
});

export function requestOperator(lab: Lab): Operator {
  const provision = async (name: string, target: string, more: JsonObject = {}): Promise<void> => {
    await call(lab, 'PUT', `/nodes/${name}/states/provision`, { target, ...more });
  };
  const set = async (name: string, path: string, value: unknown): Promise<void> => {
    await call(lab, 'PATCH', `/nodes/${name}`, [{ op: 'replace', path, value }]);
  };
  return {
    create: async (node, mac) => {
      const { uuid } = await call(lab, 'POST', '/nodes', node);
      await call(lab, 'POST', '/ports', { node_uuid: uuid, address: mac });
    },
    setAutomatedClean: (name, isOn) => set(name, '/automated_clean', isOn),
    setInstance: (name, info) => set(name, '/instance_info', info),
    provision: (name, verb) => provision(name, verb === 'undeploy' ? 'deleted' : verb),
    deploy: (name, configdrive) => provision(name, 'active', { configdrive }),
    inventory: async (name) => (await call(lab, 'GET', `/nodes/${name}/inventory`))['inventory'] as Inventory,
    powerOff: async (name) => {
      await call(lab, 'PUT', `/nodes/${name}/states/power`, { target: 'power off' });
    },
    delete: async (name) => {
      await call(lab, 'DELETE', `/nodes/${name}`);
    },
    showError: (name) =>
      call(lab, 'GET', `/nodes/${name}`).then(
        () => '',
        (error: unknown) => String(error),
      ),
  };
}
