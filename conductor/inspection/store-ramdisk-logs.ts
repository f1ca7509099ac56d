/** Stores the logs that a ramdisk sends with its inventory, one file per report with Ironic's file name ([agent]deploy_logs_collect). */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { putObject } from '../../wire/openstack/swift';
import type { NodeTask } from '../core/node-task';

/** 2026-06-01-12-00-00 */
const stampOf = (now: number): string => new Date(now).toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '-');
const logsFileName = ({ uuid, name, instance_uuid: instance }: NodeRecord, label: string, now: number): string =>
  `${[uuid, name, instance, label, stampOf(now)].filter((part) => part !== null && part !== '').join('_')}.tar.gz`;

/**
 * Stores the logs (a base64 archive) if the option asks for them after this result. A write error is logged and does not fail the
 * inspection.
 */
export async function storeRamdiskLogs(task: NodeTask, logs: unknown, failed: boolean): Promise<void> {
  const { options } = task.context;
  const when = options['agent.deploy_logs_collect'];
  if (when === 'never' || (when === 'on_failure' && !failed)) return;
  if (typeof logs !== 'string' || logs === '') {
    task.log.warn('the ramdisk sent no logs with its inventory');
    return;
  }
  const name = logsFileName(task.node, 'inspect', task.clock.now());
  const data = Buffer.from(logs, 'base64');
  const path = await (options['agent.deploy_logs_storage_backend'] === 'swift' ? toSwift : toFolder)(task, name, data).catch(
    (error: unknown) => {
      task.log.warn('could not store the logs of the ramdisk', { name, reason: reasonOf(error) });
    },
  );
  if (path !== undefined) task.log.info('stored the logs of the ramdisk', { path });
}

async function toFolder({ options }: NodeTask, name: string, data: Buffer): Promise<string> {
  const folder = options['agent.deploy_logs_local_path'];
  await mkdir(folder, { recursive: true, mode: 0o750 });
  await writeFile(join(folder, name), data, { mode: 0o640 });
  return join(folder, name);
}

async function toSwift({ options, connections, signal }: NodeTask, name: string, data: Buffer): Promise<string> {
  const container = options['agent.deploy_logs_swift_container'];
  const secondsToLive = options['agent.deploy_logs_swift_days_to_expire'] * 86_400;
  await putObject(connections.services.swift, { container, name, data, secondsToLive }, { signal });
  return `${container}/${name}`;
}
