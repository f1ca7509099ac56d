// The scenarios of `npm run bench`, by name.
import { fleetLifecycle } from './scenarios/fleet-lifecycle.mjs';
import { fleetPower } from './scenarios/fleet-power.mjs';
import { heartbeats } from './scenarios/heartbeats.mjs';
import { imageCache } from './scenarios/image-cache.mjs';
import { inspection } from './scenarios/inspection.mjs';
import { ipmi } from './scenarios/ipmi.mjs';
import { policy } from './scenarios/policy.mjs';
import { powerSync } from './scenarios/power-sync.mjs';
import { provisioning } from './scenarios/provisioning.mjs';
import { recorder } from './scenarios/recorder.mjs';
import { sensors } from './scenarios/sensors.mjs';
import { snapshot } from './scenarios/snapshot.mjs';

/**
 * @typedef {object} Size
 * @property {number} nodes
 * @property {number} seconds of each measurement by time
 * @property {{ url: string, pid: number } | undefined} reference an Ironic to measure too
 * @property {number} [size] MiB of a disk
 * @property {number} [disk-rate] MB a second at which the disk is read at most
 *
 * @typedef {object} Scenario
 * @property {number} nodes by default
 * @property {number} [seconds] by default; absent: 5
 * @property {(bench: import('./server.mjs').Bench, size: Size) => Promise<void>} run
 *
 * @typedef {object} ScenarioWithoutServer
 * @property {number} nodes by default
 * @property {(count: number) => Promise<void>} runAlone
 */

/** @type {ReadonlyMap<string, Scenario | ScenarioWithoutServer>} */
export const SCENARIOS = new Map(
  Object.entries({
    provisioning,
    heartbeats,
    'power-sync': powerSync,
    'fleet-power': fleetPower,
    'fleet-lifecycle': fleetLifecycle,
    sensors,
    recorder,
    'image-cache': imageCache,
    inspection,
    ipmi,
    policy,
    snapshot,
  }),
);
