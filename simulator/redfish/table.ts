/** All routes of the service, and the search for the route of a path. */
import { ACCOUNT_ROUTES } from './resources/accounts';
import { EVENT_ROUTES } from './resources/events';
import { LOG_ROUTES } from './resources/log';
import { ODATA_ROUTES } from './resources/odata';
import { PART_ROUTES } from './resources/parts';
import { ADAPTER_ROUTES } from './resources/adapters';
import { BIOS_ROUTES } from './resources/bios';
import { CHASSIS_ROUTES } from './resources/chassis';
import { MANAGER_ROUTES } from './resources/manager';
import { MEDIA_ROUTES } from './resources/virtual-media';
import { REGISTRY_ROUTES } from './resources/registries';
import { ROOT_ROUTES } from './resources/root';
import { bmcOf, type RouteContext, type Route, type Service, type SystemContext } from './protocol/routes';
import { SECURE_BOOT_ROUTES } from './resources/secure-boot';
import { SENSOR_ROUTES } from './resources/sensors';
import { SESSION_ROUTES } from './resources/sessions';
import { STORAGE_ROUTES } from './resources/storage';
import { SYSTEM_ROUTES } from './resources/system';
import { settleTasks } from '../hardware/task-records';
import { TASK_ROUTES } from './resources/tasks';
import { UPDATE_ROUTES } from './resources/update';

/** Routes of the service as a whole. */
const SERVICE_TABLE = [
  ROOT_ROUTES,
  ODATA_ROUTES,
  SESSION_ROUTES,
  ACCOUNT_ROUTES,
  EVENT_ROUTES,
  REGISTRY_ROUTES,
  TASK_ROUTES,
  UPDATE_ROUTES,
].flat();
/** Routes of one machine: {system} is the first name in the path. */
const SYSTEM_TABLE = [
  SYSTEM_ROUTES,
  PART_ROUTES,
  LOG_ROUTES,
  BIOS_ROUTES,
  STORAGE_ROUTES,
  SECURE_BOOT_ROUTES,
  SENSOR_ROUTES,
  CHASSIS_ROUTES,
  ADAPTER_ROUTES,
  MANAGER_ROUTES,
  MEDIA_ROUTES,
].flat();

interface CompiledRoute {
  readonly pattern: RegExp;
  readonly route: Route<SystemContext>;
  readonly ofSystem: boolean;
}
const compile = (route: Route<SystemContext>, ofSystem: boolean): CompiledRoute => ({
  pattern: new RegExp(`^${route.path.replace(/[.$]/g, '\\$&').replace(/\{\w+\}/g, '([^/]+)')}$`),
  route,
  ofSystem,
});
// A route of the service never reads `system`.
const COMPILED = [
  ...SERVICE_TABLE.map((route) => compile(route as Route<SystemContext>, false)),
  ...SYSTEM_TABLE.map((route) => compile(route, true)),
];
const depthOf = (path: string): number => path.split('/').length;
/** The routes by the number of their path segments, so that a request is compared with few of them. */
const BY_DEPTH = Array.from({ length: Math.max(...COMPILED.map(({ route }) => depthOf(route.path))) + 1 }, (_, depth) =>
  COMPILED.filter(({ route }) => depthOf(route.path) === depth),
);

export interface MatchedRoute {
  readonly route: Route<SystemContext>;
  readonly at: SystemContext;
}
/** Routes of makers' resources, compiled at their first use. */
const MAKERS = new WeakMap<Route<SystemContext>, CompiledRoute>();
function matchMaker(service: Service, path: string): MatchedRoute | undefined {
  const system = bmcOf(service);
  if (!system) return undefined;
  for (const route of service.makerRoutes!) {
    const compiled = MAKERS.get(route) ?? compile(route, route.path.includes('{system}'));
    MAKERS.set(route, compiled);
    const values = compiled.pattern.exec(path)?.slice(1);
    if (!values || (compiled.ofSystem && values[0] !== system.name)) continue;
    settleTasks(system.hardware, service.clock.now());
    return { route, at: { service, path, values, system } };
  }
  return undefined;
}

/** @param path below the service root */
export function matchRoute(service: Service, path: string): MatchedRoute | undefined {
  const made = service.makerRoutes && matchMaker(service, path);
  if (made) return made;
  for (const { pattern, route, ofSystem } of BY_DEPTH[depthOf(path)] ?? []) {
    const values = pattern.exec(path)?.slice(1);
    const system = values && ofSystem ? service.systems.get(values[0]!) : undefined;
    if (!values || (ofSystem && !system)) continue;
    if (system) settleTasks(system.hardware, service.clock.now());
    const at: RouteContext = { service, path, values };
    return { route, at: { ...at, system: system! } };
  }
  return undefined;
}
