/** Many simulated machines in one process. Each has BMCs of its own, and one HTTPS server serves all agents. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
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
import { faultBox, faultyRequests, type FaultBox, type Faults } from '../bmc/faults';
import { FIRMWARE } from '../hardware/firmware-versions';
import { conditionsOf } from '../hardware/parts';
import { newHardware, type HardwareState } from '../hardware/hardware';
import { listenOn, openHttpClient, readJson, sendJson, type HttpClient } from '../http';
import { serveIpmi } from '../ipmi/ipmi';
import { createMachine, type MachineState, type SimulatedMachine } from '../machine/machine';
import { addressOfMachine, hostInUrl, type AddressRange } from './address-range';
import { buildOfQemu, screenSocketOf, startQemuMachine, type QemuFleet } from '../qemu/machine';
import { serveRedfish, type System } from '../redfish';
import { makerOf, personalityOf, type MakerChoice } from '../redfish/makers/personalities';
import { failDownloads } from '../hardware/task-records';
import { createRestart } from '../bmc/restart';
import { openStateFolder, type StateFolder } from './state-folder';
import { withoutEndSlashes } from '../../wire/urls';

export type Protocol = 'ipmi' | 'redfish';
interface FleetSetup {
  readonly count: number;
  /** Number of the first machine. Two fleets on one network need different numbers, since names and MAC addresses depend on them. */
  readonly first?: number;
  /** Chooses the parts of each machine, deterministically; absent: all machines have the same parts. */
  readonly seed?: number | undefined;
  /** The architecture of the machine with this index; absent: x86_64. */
  readonly architectures?: (index: number) => MachineDescription['architecture'];
  /** The machines that really boot, in QEMU; absent: all machines are simulated. */
  readonly qemu?: QemuFleet | undefined;
  /** URL of the HTTP boot service (the server's [deploy]http_url); absent: nothing boots from the network. */
  readonly bootUrl?: string | undefined;
  /** Address for BMCs and agents. */
  readonly host: string;
  /** The addresses of the BMCs; absent: any free ports of `host`. */
  readonly ipmi?: AddressRange;
  readonly redfish?: AddressRange;
  /** The protocols of the machine with this number; absent: both. */
  readonly protocols?: (index: number) => readonly Protocol[];
  /** Port of the agents' server; absent or 0: the stored port, or any free port if none is stored. */
  readonly agentPort?: number;
  readonly behaviour?: Partial<Behaviour>;
  /** Milliseconds that a task of a Redfish service runs. */
  readonly taskMs?: number;
  /** The faults of the machine with this name at the start. */
  readonly faults?: (name: string) => Faults;
  /** The maker and the habits of the machine with this index; absent, or undefined: those of its stored state, or none. */
  readonly maker?: ((index: number) => MakerChoice | undefined) | undefined;
  /** Where the fleet stores its state; absent: nowhere. */
  readonly stateFolder?: string | undefined;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  /** Called at each change of a machine's phase. */
  readonly onPhase?: ((machine: SimulatedMachine) => void) | undefined;
}
export interface FleetMachine {
  readonly name: string;
  /** The first one belongs to the boot interface. */
  readonly macs: readonly string[];
  readonly protocols: readonly Protocol[];
  /** Access data for Redfish and IPMI; without meaning if the machine does not have the protocol. */
  readonly redfish: { readonly address: string; readonly systemId: string; readonly username: string; readonly password: string };
  readonly ipmi: { readonly address: string; readonly port: number; readonly username: string; readonly password: string };
  /** The Unix socket of its screen, by VNC; absent: it has none. */
  readonly screen?: string | undefined;
  readonly control: SimulatedMachine;
  /** The faults of its BMCs, which may change at any time. */
  readonly faults: FaultBox;
}
export interface Fleet {
  readonly machines: readonly FleetMachine[];
  /** Ends all machines like a power failure, and closes all ports. */
  close(): Promise<void>;
}

const USERNAME = 'admin';
const PASSWORD = 'password';
const BOTH: readonly Protocol[] = ['ipmi', 'redfish'];
const MAX_BODY = 64 * 2 ** 20;
const AGENT_PATH = /^\/machine\/([^/]+)(\/.*)?$/;

/** State that all machines of a fleet share. */
interface Shared {
  readonly setup: FleetSetup;
  readonly states: StateFolder | undefined;
  readonly http: HttpClient;
  readonly agents: { readonly port: number; readonly certificate: string };
  /** The folder for the disks of machines in QEMU. */
  readonly qemuFolder: () => Promise<string>;
  readonly byName: Map<string, SimulatedMachine>;
  /** Called in reverse order when the fleet closes. */
  readonly closers: (() => Promise<void>)[];
}

/** Rejects when a port is not available; nothing stays open then. */
export async function startFleet(setup: FleetSetup): Promise<Fleet> {
  const { host, log, clock, first = 0 } = setup;
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const undo of closers.splice(0).reverse()) await undo();
  };
  const byName = new Map<string, SimulatedMachine>();
  try {
    const states = setup.stateFolder === undefined ? undefined : await openStateFolder(setup.stateFolder, { clock, log });
    if (states) closers.push(() => states.close());
    const http = openHttpClient();
    closers.push(() => http.close());
    const identity = agentIdentity(setup, states);
    const server = await serveAgents({ host, log, ...identity }, byName);
    closers.push(server.close);
    // Bloomery and Ironic refuse heartbeats of an agent whose callback URL or certificate has changed.
    states?.keep(agentsName(first), (): SavedAgents => ({ ...identity, host, port: server.port }))();

    const agents = { port: server.port, certificate: identity.certificate };
    const shared: Shared = { setup, states, http, agents, qemuFolder: qemuFolderOf(setup, closers), byName, closers };
    const machines: FleetMachine[] = [];
    for (let index = 0; index < setup.count; index++) machines.push(await addMachine(shared, index));
    return { machines, close };
  } catch (error) {
    await close();
    if ((error as { readonly code?: unknown }).code !== 'EMFILE') throw error;
    throw new Error(`${setup.count} machines need more open files than this process may have: see ulimit -n`, { cause: error });
  }
}

/** The state folder, or a temporary folder that the fleet removes when it closes. */
function qemuFolderOf({ qemu, stateFolder }: FleetSetup, closers: Shared['closers']): () => Promise<string> {
  let folder: Promise<string> | undefined;
  const get = (): Promise<string> => {
    folder ??= stateFolder === undefined ? mkdtemp(join(tmpdir(), 'simulate-')) : Promise.resolve(stateFolder);
    return folder;
  };
  if (qemu && stateFolder === undefined) closers.push(async () => rm(await get(), { recursive: true, force: true }));
  return get;
}

/** Starts the machine with this number and its BMCs. */
async function addMachine(shared: Shared, index: number): Promise<FleetMachine> {
  const { setup, states, byName, closers } = shared;
  const { clock, log, random, host } = setup;
  const anyPort: AddressRange = { host, port: 0, count: 'ports' };
  const places = { ipmi: addressOfMachine(setup.ipmi ?? anyPort, index), redfish: addressOfMachine(setup.redfish ?? anyPort, index) };
  const protocols = setup.protocols?.(index) ?? BOTH;
  const qemu = index < (setup.qemu?.count ?? 0) ? setup.qemu : undefined;
  const described = describeMachine((setup.first ?? 0) + index, places[protocols[0]!].host, qemu ? buildOfQemu(qemu) : setup.seed);
  const { name } = described;
  const saved = states?.read(name) as SavedMachine | undefined;
  const choice = setup.maker?.(index) ?? saved?.maker;
  const personality = choice?.personality && personalityOf(choice.personality);
  const description: MachineDescription = {
    ...described,
    ...(qemu ? { mode: qemu.mode } : {}),
    ...(setup.architectures ? { architecture: setup.architectures(index) } : {}),
    ...(personality && { manufacturer: personality.manufacturer, product: personality.model }),
  };
  let changed = (): void => {};
  const hardware = newHardware(saved?.hardware, () => changed());
  failDownloads(hardware, clock.now());
  if (personality && !saved) hardware.set(FIRMWARE, personality.firmware);
  const control = await startMachine(shared, {
    description,
    http: shared.http,
    clock,
    log,
    hardware,
    onPhase: setup.onPhase,
    state: saved?.machine,
    onChange: () => changed(),
    qemu,
  });
  if (states)
    changed = states.keep(name, (): SavedMachine => ({
      machine: control.snapshot(),
      hardware: hardware.snapshot(),
      ...(choice && { maker: choice }),
    }));
  byName.set(name, control);
  closers.push(() => control.close());
  const faults = faultBox(setup.faults?.(name) ?? {});
  const access = { username: USERNAME, password: PASSWORD, restart: createRestart(clock, faults), log, clock, random };
  const machine = withMachineFaults(control, faults, clock);
  const ports = { ipmi: 0, redfish: 0 };
  if (protocols.includes('redfish')) {
    const wrap = (listener: RequestListener): RequestListener => faultyRequests({ box: faults, clock, random }, listener);
    const times = setup.taskMs === undefined ? {} : { taskMs: setup.taskMs };
    const maker = choice && makerOf(choice);
    const service = { ...access, ...places.redfish, ...times, machines: [machine], faults, wrap, http: shared.http, maker };
    const redfish = await serveRedfish(service);
    ports.redfish = redfish.port;
    closers.push(() => redfish.close());
  }
  if (protocols.includes('ipmi')) {
    const ipmi = await serveIpmi({ ...access, ...places.ipmi, machine, faults });
    ports.ipmi = ipmi.port;
    closers.push(() => ipmi.close());
  }
  return {
    name,
    macs: control.macs,
    protocols,
    screen: qemu && screenSocketOf(qemu, name),
    control,
    faults,
    redfish: {
      address: `http://${hostInUrl(places.redfish.host)}:${ports.redfish}`,
      systemId: `/redfish/v1/Systems/${personality?.ids.system ?? name}`,
      username: USERNAME,
      password: PASSWORD,
    },
    ipmi: { address: places.ipmi.host, port: ports.ipmi, username: USERNAME, password: PASSWORD },
  };
}

type CommonSetup = Omit<Parameters<typeof startQemuMachine>[0], 'qemu' | 'folder'>;
async function startMachine(
  { setup, agents, qemuFolder }: Shared,
  { qemu, ...common }: CommonSetup & { readonly qemu?: QemuFleet | undefined },
): Promise<SimulatedMachine> {
  const { name } = common.description;
  if (qemu) return startQemuMachine({ ...common, qemu, folder: join(await qemuFolder(), name) });
  return createMachine({
    ...common,
    random: setup.random,
    bootUrl: withoutEndSlashes(setup.bootUrl),
    callbackUrl: `https://${hostInUrl(setup.host)}:${agents.port}/machine/${name}`,
    certificate: agents.certificate,
    behaviour: setup.behaviour,
  });
}

/** The machine as its BMCs see it, with the faults `flap` (a power state that alternates), `stopped` and `parts`. */
const withMachineFaults = (machine: SimulatedMachine, box: FaultBox, clock: Clock): System => ({
  ...machine,
  // Not a copy of the function, so that a test can watch the orders of the BMC.
  act: (action) => machine.act(action),
  isOn: () => (box.now.flap === undefined ? machine.isOn() : Math.floor(clock.now() / box.now.flap) % 2 === 0),
  isStopped: (sensor) => box.now.stopped?.some((name) => name === sensor || name === '*') ?? false,
  conditions: (part) => (box.now.parts ? conditionsOf(box.now.parts, part) : []),
});

/** The stored state of a machine and its BMCs. */
interface SavedMachine {
  readonly machine: MachineState;
  readonly hardware: HardwareState;
  /** Absent: a machine that deviates from nothing. */
  readonly maker?: MakerChoice;
}

/** The stored state of the agents' server, under a name that no machine has. */
interface SavedAgents extends OwnCertificate {
  readonly host: string;
  readonly port: number;
}
const agentsName = (first: number): string => `agents-${first}`;
/** A stored fleet may run for years. Only the server that receives the certificate with a heartbeat trusts it. */
const CERTIFICATE_DAYS = 3650;

/** Port and certificate of the agents' server: the stored ones, if the host is the same. */
function agentIdentity(
  { host, first = 0, agentPort = 0, clock, random }: FleetSetup,
  states: StateFolder | undefined,
): OwnCertificate & { readonly port: number } {
  const saved = states?.read(agentsName(first)) as SavedAgents | undefined;
  if (saved?.host !== host)
    return { ...ownCertificate(host, 'simulated agents', clock.now(), random, { days: CERTIFICATE_DAYS }), port: agentPort };
  const { certificate, privateKey, port } = saved;
  return { certificate, privateKey, port: agentPort || port };
}

/** Serves the command APIs of all agents on one port. The path prefix /machine/NAME selects the agent. */
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
      // Closes the connection if no agent runs: nothing listens on the address of a real machine without an agent.
      if (!answer || machine?.phase() !== 'agent') response.destroy();
      else sendJson(response, answer.status, answer.body);
    } catch (error) {
      log.debug('a request to an agent failed', { error: reasonOf(error) });
      response.destroy();
    }
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => void handle(request, response);
  return listenOn(createServer({ cert: certificate, key: privateKey }, listener), port, host);
}
