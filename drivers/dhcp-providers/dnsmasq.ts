/**
 * Files for an external dnsmasq, as Ironic writes them. Each node has a file with its options. Each MAC address has a file that gives
 * requests of that address the node's tag. dnsmasq reads new files by itself (`dhcp-optsdir`, `dhcp-hostsdir`), without a signal.
 */
import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname, basename, join } from 'node:path';
import { Fault } from '../../model/errors';
import type { Task } from '../interfaces';
import type { DhcpProvider } from './provider';

const TAG = 'dnsmasq_tag';
const optionFile = ({ node, options }: Task): string => join(options['dnsmasq.dhcp_optsdir'], `ironic-${node.uuid}.conf`);
const hostFile = ({ options }: Task, mac: string): string => join(options['dnsmasq.dhcp_hostsdir'], `ironic-${mac}.conf`);
const macsOf = ({ ports }: Task): readonly string[] => [...new Set(ports.filter((port) => port.pxe_enabled).map(({ address }) => address))];

/** Replaces the file atomically: dnsmasq never reads half a file, and ignores the temporary file, whose name begins with a dot. */
async function put(path: string, line: string): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}`);
  try {
    await writeFile(temporary, `${line}\n`, { mode: 0o644 });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}

async function writing(task: Task, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const message = `The files of dnsmasq for node ${task.node.uuid} cannot be written ([dnsmasq]dhcp_optsdir, dhcp_hostsdir): ${(error as Error).message}`;
    throw new Fault('DriverOperationError', { message }, { cause: error });
  }
}

export const dnsmasq: DhcpProvider = {
  // The configuration of dnsmasq has `dhcp-match=set:ipxe,175`.
  hasIpxeTag: true,
  update: async (task, options) => {
    const stored = task.node.driver_internal_info[TAG];
    const tag = typeof stored === 'string' && stored !== '' ? stored : randomUUID();
    if (tag !== stored) await task.saveInternal({ [TAG]: tag });
    await writing(task, async () => {
      await put(optionFile(task), options.map(({ opt_name: name, opt_value: value }) => `tag:${tag},${name},${value}`).join('\n'));
      for (const mac of macsOf(task)) await put(hostFile(task, mac), `${mac},set:${tag},set:ironic`);
    });
  },
  // dnsmasq keeps the lines of a deleted file. The MAC address therefore gets a new line, and no request gets the tag any more.
  clean: async (task) => {
    await task.saveInternal({ [TAG]: undefined });
    await writing(task, async () => {
      for (const mac of macsOf(task)) await put(hostFile(task, mac), `${mac},ignore`);
      await rm(optionFile(task), { force: true });
    });
  },
};
