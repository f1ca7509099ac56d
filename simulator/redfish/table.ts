/** All resources of the service, and which one a path is. */
import { ACCOUNT_ROWS } from './resources/accounts';
import { EVENT_ROWS } from './resources/events';
import { LOG_ROWS } from './resources/log';
import { ODATA_ROWS } from './resources/odata';
import { PART_ROWS } from './resources/parts';
import { ADAPTER_ROWS } from './resources/adapters';
import { BIOS_ROWS } from './resources/bios';
import { CHASSIS_ROWS } from './resources/chassis';
import { MANAGER_ROWS } from './resources/manager';
import { MEDIA_ROWS } from './resources/virtual-media';
import { REGISTRY_ROWS } from './resources/registries';
import { ROOT_ROWS } from './resources/root';
import type { At, Row, Service, SystemAt } from './protocol/routes';
import { SECURE_BOOT_ROWS } from './resources/secure-boot';
import { SENSOR_ROWS } from './resources/sensors';
import { SESSION_ROWS } from './resources/sessions';
import { STORAGE_ROWS } from './resources/storage';
import { SYSTEM_ROWS } from './resources/system';
import { settle } from '../hardware/task-records';
import { TASK_ROWS } from './resources/tasks';
import { UPDATE_ROWS } from './resources/update';

/** Of the service as a whole. */
const SERVICE_TABLE = [ROOT_ROWS, ODATA_ROWS, SESSION_ROWS, ACCOUNT_ROWS, EVENT_ROWS, REGISTRY_ROWS, TASK_ROWS, UPDATE_ROWS].flat();
/** Of one machine: {system} is the first name in the path. */
const SYSTEM_TABLE = [
  SYSTEM_ROWS,
  PART_ROWS,
  LOG_ROWS,
  BIOS_ROWS,
  STORAGE_ROWS,
  SECURE_BOOT_ROWS,
  SENSOR_ROWS,
  CHASSIS_ROWS,
  ADAPTER_ROWS,
  MANAGER_ROWS,
  MEDIA_ROWS,
].flat();

interface Compiled {
  readonly pattern: RegExp;
  readonly row: Row<SystemAt>;
  readonly ofSystem: boolean;
}
const compile = (row: Row<SystemAt>, ofSystem: boolean): Compiled => ({
  pattern: new RegExp(`^${row.path.replace(/[.$]/g, '\\$&').replace(/\{\w+\}/g, '([^/]+)')}$`),
  row,
  ofSystem,
});
// A row without machine never reads `system`.
const ROWS = [...SERVICE_TABLE.map((row) => compile(row as Row<SystemAt>, false)), ...SYSTEM_TABLE.map((row) => compile(row, true))];
const depthOf = (path: string): number => path.split('/').length;
/** By number of segments, so that a request is held against few. */
const BY_DEPTH = Array.from({ length: Math.max(...ROWS.map(({ row }) => depthOf(row.path))) + 1 }, (_, depth) =>
  ROWS.filter(({ row }) => depthOf(row.path) === depth),
);

export interface Found {
  readonly row: Row<SystemAt>;
  readonly at: SystemAt;
}
/** @param path below the service root */
export function find(service: Service, path: string): Found | undefined {
  for (const { pattern, row, ofSystem } of BY_DEPTH[depthOf(path)] ?? []) {
    const values = pattern.exec(path)?.slice(1);
    const system = values && ofSystem ? service.systems.get(values[0]!) : undefined;
    if (!values || (ofSystem && !system)) continue;
    // What was due has happened before anyone looks.
    if (system) settle(system.hardware, service.clock.now());
    const at: At = { service, path, values };
    return { row, at: { ...at, system: system! } };
  }
  return undefined;
}
