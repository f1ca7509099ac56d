/** Many simulated machines in one process: each behind BMCs of its own, all agents behind one HTTP server. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { ownCertificate, type OwnCertificate } from '../../wire/http/certificate';
import type { Behaviour } from '../machine/behaviour';
import { describeMachine, type MachineDescription } from '../hardware/description';
import { faultyRequests, noTraffic, type FaultBox, type Faults } from '../bmc/faults';
import { newHardware, type HardwareState } from '../hardware/hardware';
import { openHttpClient, readJson, sendJson, listenOn } from '../http';
import { serveIpmi } from '../ipmi/ipmi';
import { createMachine, type MachineState, type SimulatedMachine } from '../machine/machine';
import { placeOf, shown, type Place } from './address-range';
import { buildOfQemu, startQemuMachine, type QemuFleet } from '../qemu/machine';
import { serveRedfish, type System } from '../redfish';
import { failDownloads } from '../hardware/task-records';
import { createRestart } from '../bmc/restart';
import { openStateFolder, type StateFolder } from './state-folder';

export type Protocol = 'ipmi' | 'redfish';
export interface FleetSetup {
  readonly count: number;
  /** Number of the first machine: fleets that run side by side must not share machines. */
  readonly first?: number;
  /** Each machine is built differently, by this number; absent: all the same. */
  readonly seed?: number;
  /** Machines that really boot, in QEMU; absent: all only pretend. */
  readonly qemu?: QemuFleet;
  /** URL of the HTTP boot service (the server's [deploy]http_url); absent: nothing boots from the network. */
  readonly bootUrl?: string;
  /** Address for BMCs and agents. */
  readonly host: string;
  /** Where the first machine's BMCs are, and how those of the others follow; absent: at any free port of `host`. */
  readonly ipmi?: Place;
  readonly redfish?: Place;
  /** Which BMCs the machine with this number has; absent: both. */
  readonly protocols?: (index: number) => readonly Protocol[];
  /** Of all agents; absent or 0: where they were before, or any free port. */
  readonly agentPort?: number;
  readonly behaviour?: Partial<Behaviour>;
  /** What a task of a Redfish service takes. */
  readonly taskMs?: number;
  /** Of the machine with this name, at the start. */
  readonly faults?: (name: string) => Faults;
  /** What the machines remember is kept in this folder; absent: nowhere. */
  readonly stateFolder?: string;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  /** Called at each change of what a machine does. */
  readonly onPhase?: (machine: SimulatedMachine) => void;
}
export interface FleetMachine {
  readonly name: string;
  /** The first one boots. */
  readonly macs: readonly string[];
  readonly protocols: readonly Protocol[];
  /** Meaningless for a machine without this BMC. */
  readonly redfish: { readonly address: string; readonly systemId: string; readonly username: string; readonly password: string };
  readonly ipmi: { readonly address: string; readonly port: number; readonly username: string; readonly password: string };
  readonly control: SimulatedMachine;
  /** What is wrong with its BMCs; may be changed. */
  readonly faults: FaultBox;
}
export interface Fleet {
  readonly machines: readonly FleetMachine[];
  /** Ends all machines, as if the power had failed, and closes every port. */
  close(): Promise<void>;
}

const USERNAME = 'admin';
const PASSWORD = 'password';
const BOTH: readonly Protocol[] = ['ipmi', 'redfish'];
const MAX_BODY = 64 * 2 ** 20;
const AGENT_PATH = /^\/machine\/([^/]+)(\/.*)?$/;

/** What BMCs see of a machine: its power, as far as they tell it right. */
const seenThrough = (machine: SimulatedMachine, box: FaultBox, clock: Clock): System => ({
  ...machine,
  isOn: () => (box.now.flap === undefined ? machine.isOn() : Math.floor(clock.now() / box.now.flap) % 2 === 0),
});

/** Rejects when a port cannot be had; nothing is left open then. */
export async function startFleet(setup: FleetSetup): Promise<Fleet> {
  const { host, log, clock, random, first = 0 } = setup;
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const undo of closers.splice(0).reverse()) await undo();
  };
  const byName = new Map<string, SimulatedMachine>();
  const anyPort: Place = { host, port: 0, count: 'ports' };
  try {
    const states = setup.stateFolder === undefined ? undefined : await openStateFolder(setup.stateFolder, { clock, log });
    if (states) closers.push(() => states.close());
    const http = openHttpClient();
    closers.push(() => http.close());
    const own = agentsOf(setup, states);
    const agents = await serveAgents({ host, log, ...own }, byName);
    closers.push(agents.close);
    // A server takes no heartbeat from an agent whose address or certificate changed.
    states?.keep(savedAs(first), (): SavedAgents => ({ ...own, host, port: agents.port }))();

    /** Disks of machines in QEMU: beside what the others remember, or for as long as the fleet runs. */
    let folder: Promise<string> | undefined;
    const qemuFolder = (): Promise<string> => {
      folder ??= setup.stateFolder === undefined ? mkdtemp(join(tmpdir(), 'simulate-')) : Promise.resolve(setup.stateFolder);
      return folder;
    };
    if (setup.qemu && setup.stateFolder === undefined) closers.push(async () => rm(await qemuFolder(), { recursive: true, force: true }));

    const add = async (index: number): Promise<FleetMachine> => {
      const places = { ipmi: placeOf(setup.ipmi ?? anyPort, index), redfish: placeOf(setup.redfish ?? anyPort, index) };
      const protocols = setup.protocols?.(index) ?? BOTH;
      const qemu = index < (setup.qemu?.count ?? 0) ? setup.qemu : undefined;
      const description: MachineDescription = {
        ...describeMachine(first + index, places[protocols[0]!].host, qemu ? buildOfQemu(qemu) : setup.seed),
        ...(qemu ? { mode: qemu.mode } : {}),
      };
      const { name } = description;
      const state = states?.read(name) as SavedMachine | undefined;
      let changed = (): void => {};
      const hardware = newHardware(state?.hardware, () => changed());
      failDownloads(hardware, clock.now());
      const common = {
        ...{ description, http, clock, log, hardware },
        ...(setup.onPhase ? { onPhase: setup.onPhase } : {}),
        ...(state ? { state: state.machine } : {}),
        onChange: () => changed(),
      };
      const control = qemu
        ? await startQemuMachine({ ...common, qemu, folder: join(await qemuFolder(), name) })
        : createMachine({
            ...common,
            random,
            bootUrl: setup.bootUrl?.replace(/\/+$/, ''),
            callbackUrl: `https://${shown(host)}:${agents.port}/machine/${name}`,
            certificate: own.certificate,
            ...(setup.behaviour ? { behaviour: setup.behaviour } : {}),
          });
      if (states) changed = states.keep(name, (): SavedMachine => ({ machine: control.snapshot(), hardware: hardware.snapshot() }));
      byName.set(name, control);
      closers.push(() => control.close());
      const faults: FaultBox = { now: setup.faults?.(name) ?? {}, traffic: noTraffic() };
      const machine = seenThrough(control, faults, clock);
      const restart = createRestart(clock, faults);
      const access = { username: USERNAME, password: PASSWORD, restart, log, clock, random };
      const ports = { ipmi: 0, redfish: 0 };
      if (protocols.includes('redfish')) {
        const wrap = (listener: Parameters<typeof faultyRequests>[1]) => faultyRequests({ box: faults, clock, random }, listener);
        const times = setup.taskMs === undefined ? {} : { taskMs: setup.taskMs };
        const redfish = await serveRedfish({ ...access, ...places.redfish, ...times, machines: [machine], wrap, http });
        ports.redfish = redfish.port;
        closers.push(() => redfish.close());
      }
      if (protocols.includes('ipmi')) {
        const ipmi = await serveIpmi({ ...access, ...places.ipmi, machine, faults });
        ports.ipmi = ipmi.port;
        closers.push(() => ipmi.close());
      }
      return {
        ...{ name, macs: control.macs, protocols, control, faults },
        redfish: {
          address: `http://${shown(places.redfish.host)}:${ports.redfish}`,
          systemId: `/redfish/v1/Systems/${name}`,
          username: USERNAME,
          password: PASSWORD,
        },
        ipmi: { address: places.ipmi.host, port: ports.ipmi, username: USERNAME, password: PASSWORD },
      };
    };
    const machines: FleetMachine[] = [];
    for (let index = 0; index < setup.count; index++) machines.push(await add(index));
    return { machines, close };
  } catch (error) {
    await close();
    if ((error as { readonly code?: unknown }).code !== 'EMFILE') throw error;
    throw new Error(`${setup.count} machines need more open files than this process may have: see ulimit -n`, { cause: error });
  }
}

/** What is kept of a machine and its BMCs. */
interface SavedMachine {
  readonly machine: MachineState;
  readonly hardware: HardwareState;
}

/** What is kept of the agents beside the machines, which have other names. */
interface SavedAgents extends OwnCertificate {
  readonly host: string;
  readonly port: number;
}
const savedAs = (first: number): string => `agents-${first}`;
/** Nobody trusts it for anything else, and a fleet that is kept has to outlive a real ramdisk. */
const CERTIFICATE_DAYS = 3650;

/** Where the agents listen, and the one certificate for all of them: what they had before, at the same host. */
function agentsOf(
  { host, first = 0, agentPort = 0, clock, random }: FleetSetup,
  states: StateFolder | undefined,
): OwnCertificate & { readonly port: number } {
  const saved = states?.read(savedAs(first)) as SavedAgents | undefined;
  if (saved?.host !== host) return { ...ownCertificate(host, 'simulated agents', clock.now(), random, CERTIFICATE_DAYS), port: agentPort };
  const { certificate, privateKey, port } = saved;
  return { certificate, privateKey, port: agentPort || port };
}

/** The agents' command API: /machine/NAME is what an agent's address is elsewhere. */
async function serveAgents(
  { host, port, certificate, privateKey, log }: OwnCertificate & { readonly host: string; readonly port: number; readonly log: Log },
  machines: ReadonlyMap<string, SimulatedMachine>,
): Promise<{ readonly port: number; readonly close: () => Promise<void> }> {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const [, name, path] = AGENT_PATH.exec(request.url ?? '') ?? [];
      const machine = name === undefined ? undefined : machines.get(name);
      const body = await readJson(request, MAX_BODY);
      const answer = await machine?.agentAnswer(request.method!, path ?? '/', body);
      // Nothing listens on the address of a machine that is off.
      if (!answer || machine?.phase() !== 'agent') response.destroy();
      else sendJson(response, answer.status, answer.body);
    } catch (error) {
      log.debug('agent request failed', { error: reasonOf(error) });
      response.destroy();
    }
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => void handle(request, response);
  return listenOn(createServer({ cert: certificate, key: privateKey }, listener), port, host);
}
