/** Stores the logs of ramdisks, one file per report with Ironic's file name ([agent]deploy_logs_collect). */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { putObject } from '../../wire/openstack/swift';
import type { NodeTask } from '../core/node-task';

/** 2026-06-01-12-00-00 */
const stampOf = (now: number): string => new Date(now).toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '-');
const logsFileName = ({ uuid, name, instance_uuid: instance }: NodeRecord, label: string | null, now: number): string =>
  `${[uuid, name, instance, label, stampOf(now)].filter((part) => part !== null && part !== '').join('_')}.tar.gz`;

/** Stores the logs that came with an inventory (a base64 archive) if the option asks for them after this result. */
export async function storeRamdiskLogs(task: NodeTask, logs: unknown, failed: boolean): Promise<void> {
  const { options } = task.context;
  const when = options['agent.deploy_logs_collect'];
  if (when === 'never' || (when === 'on_failure' && !failed)) return;
  if (typeof logs !== 'string' || logs === '') {
    task.log.warn('the ramdisk sent no logs with its inventory');
    return;
  }
  await storeLogs(task, Buffer.from(logs, 'base64'), 'inspect');
}

/** A write error is logged, and fails nothing. Returns where the logs are; undefined: they are not stored. */
export async function storeLogs(task: NodeTask, data: Buffer, label: string | null): Promise<string | undefined> {
  const { options } = task.context;
  const name = logsFileName(task.node, label, task.clock.now());
  const path = await (options['agent.deploy_logs_storage_backend'] === 'swift' ? toSwift : toFolder)(task, name, data).catch(
    (error: unknown) => {
      task.log.warn('could not store the logs of the ramdisk', { name, reason: reasonOf(error) });
      return undefined;
    },
  );
  if (path !== undefined) task.log.info('stored the logs of the ramdisk', { path });
  return path;
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
