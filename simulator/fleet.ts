/** Many simulated machines in one process: each behind a Redfish and an IPMI BMC, all agents behind one HTTP server. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { describeMachine } from './description';
import { openHttpClient, readJson, sendJson, listenOn } from './http';
import { serveIpmi } from './ipmi';
import { createMachine, type Behaviour, type SimulatedMachine } from './machine';
import { serveRedfish } from './redfish';

export interface FleetSetup {
  readonly count: number;
  /** Number of the first machine: fleets that run side by side must not share machines. */
  readonly first?: number;
  /** URL of the HTTP boot service (the server's [deploy]http_url). */
  readonly bootUrl: string;
  /** Address for BMCs and agents. */
  readonly host: string;
  /** Ports; those of IPMI count up from it, one a machine. Absent or 0: any free ones. */
  readonly redfishPort?: number;
  readonly ipmiPort?: number;
  readonly agentPort?: number;
  /** PEM: the agents speak https and send this certificate. It must name `host`. */
  readonly tls?: { readonly certificate: string; readonly privateKey: string };
  readonly behaviour?: Partial<Behaviour>;
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
  readonly redfish: { readonly address: string; readonly systemId: string; readonly username: string; readonly password: string };
  readonly ipmi: { readonly address: string; readonly port: number; readonly username: string; readonly password: string };
  readonly control: SimulatedMachine;
}
export interface Fleet {
  readonly machines: readonly FleetMachine[];
  /** Switches all machines off and closes every port. */
  close(): Promise<void>;
}

const USERNAME = 'admin';
const PASSWORD = 'password';
const MAX_BODY = 64 * 2 ** 20;
const AGENT_PATH = /^\/machine\/([^/]+)(\/.*)?$/;

/** Rejects when a port cannot be had; nothing is left open then. */
export async function startFleet(setup: FleetSetup): Promise<Fleet> {
  const { host, log, clock, random } = setup;
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const undo of closers.splice(0).reverse()) await undo();
  };
  const byName = new Map<string, SimulatedMachine>();
  const shownHost = host.includes(':') ? `[${host}]` : host;
  try {
    const http = openHttpClient();
    closers.push(() => http.close());
    const agents = await serveAgents(setup, byName);
    closers.push(agents.close);

    for (let index = 0; index < setup.count; index++) {
      const description = describeMachine((setup.first ?? 0) + index, host);
      const machine = createMachine({
        description,
        bootUrl: setup.bootUrl.replace(/\/+$/, ''),
        callbackUrl: `${setup.tls ? 'https' : 'http'}://${shownHost}:${agents.port}/machine/${description.name}`,
        http,
        clock,
        random,
        log,
        ...(setup.tls ? { certificate: setup.tls.certificate } : {}),
        ...(setup.behaviour ? { behaviour: setup.behaviour } : {}),
        ...(setup.onPhase ? { onPhase: setup.onPhase } : {}),
      });
      byName.set(machine.name, machine);
      closers.push(() => machine.close());
    }
    const all = [...byName.values()];
    const access = { host, username: USERNAME, password: PASSWORD, log, clock, random };
    const redfish = await serveRedfish({ ...access, port: setup.redfishPort ?? 0, machines: all });
    closers.push(() => redfish.close());
    const machines: FleetMachine[] = [];
    for (const [index, control] of all.entries()) {
      const ipmi = await serveIpmi({ ...access, port: setup.ipmiPort ? setup.ipmiPort + index : 0, machine: control });
      closers.push(() => ipmi.close());
      machines.push({
        name: control.name,
        macs: control.macs,
        redfish: {
          address: `http://${shownHost}:${redfish.port}`,
          systemId: `/redfish/v1/Systems/${control.name}`,
          username: USERNAME,
          password: PASSWORD,
        },
        ipmi: { address: host, port: ipmi.port, username: USERNAME, password: PASSWORD },
        control,
      });
    }
    return { machines, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The agents' command API: /machine/NAME is what an agent's address is elsewhere. */
async function serveAgents(
  { host, agentPort = 0, tls, log }: FleetSetup,
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
  const server = tls ? createTlsServer({ cert: tls.certificate, key: tls.privateKey }, listener) : createServer(listener);
  return listenOn(server, agentPort, host);
}
