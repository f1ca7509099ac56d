/** The control API of a running fleet: its state, and faults of its BMCs. HTTP and JSON, on a loopback address. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { reasonOf } from '../../model/errors';
import { isLoopback } from '../../model/idents';
import type { Log } from '../../model/log';
import type { PowerAction } from '../hardware/control';
import { FAULTS, readFaults } from '../bmc/faults';
import type { Fleet, FleetMachine } from './fleet';
import { listenOn, readJson, sendJson, type HttpListener } from '../http';
import { readBehaviour } from '../machine/behaviour';

const MAX_BODY = 64 * 1024;
const ACTIONS: readonly PowerAction[] = ['on', 'off', 'cycle', 'reset', 'soft', 'diagnostic'];

const summary = ({ name, protocols, control, faults }: FleetMachine): object => ({
  name,
  protocols,
  power: control.isOn() ? 'on' : 'off',
  phase: control.phase(),
  faults: faults.now,
  // The requests to its BMCs since the start.
  traffic: faults.traffic,
});
/** With the access data of its BMCs. */
const details = (machine: FleetMachine): object => {
  const { macs, protocols, control } = machine;
  const { disks } = control.snapshot();
  return {
    ...summary(machine),
    macs,
    boot: control.boot(),
    ...Object.fromEntries(protocols.map((protocol) => [protocol, machine[protocol]])),
    disks: Object.fromEntries(Object.entries(disks).map(([disk, { url, size, sha256 }]) => [disk, { url, size, sha256 }])),
  };
};

type Change = (machine: FleetMachine, body: unknown) => void | Promise<void>;
/** [method, path after the machine's name, change] */
const CHANGES: readonly (readonly [method: string, path: string, change: Change])[] = [
  // PUT replaces all faults, PATCH changes some.
  ['PUT', 'faults', ({ faults }, body) => void (faults.now = readFaults(body))],
  ['PATCH', 'faults', ({ faults }, body) => void (faults.now = readFaults({ ...faults.now, ...(body as object) }))],
  ['PATCH', 'behaviour', ({ control }, body) => control.behave(readBehaviour(body))],
  [
    'POST',
    'power',
    async ({ control }, body) => {
      const action = ACTIONS.find((candidate) => candidate === (body as { readonly action?: unknown } | null | undefined)?.action);
      if (!action) throw new Error(`action is one of ${ACTIONS.join(', ')}`);
      await control.act(action);
    },
  ],
];

/** Rejects when the port is in use. @param host a loopback address */
export async function serveRemote(fleet: Fleet, { host, port, log }: { host: string; port: number; log: Log }): Promise<HttpListener> {
  const byName = new Map(fleet.machines.map((machine) => [machine.name, machine]));
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, kind, name, part] = (request.url ?? '').split('?')[0]!.split('/');
    const refuse = (status: number, error: string): void => sendJson(response, status, { error });
    // A request from a web page has an Origin, or another host's name in Host (DNS rebinding).
    if (request.headers.origin !== undefined || !isLoopback(request.headers.host ?? '')) {
      refuse(403, 'this is for programs on this machine');
      return;
    }
    if (kind === 'faults' && request.method === 'GET') {
      sendJson(response, 200, FAULTS);
      return;
    }
    if (kind !== 'machines') {
      refuse(404, 'there are /machines, /machines/NAME and /faults');
      return;
    }
    const chosen = name === undefined || name === 'all' ? undefined : byName.get(name);
    if (name !== undefined && name !== 'all' && !chosen) {
      refuse(404, `there is no machine ${name.slice(0, 80)}`);
      return;
    }
    if (request.method === 'GET' && part === undefined) {
      sendJson(response, 200, chosen ? details(chosen) : { machines: fleet.machines.map(summary) });
      return;
    }
    const change = CHANGES.find(([method, path]) => method === request.method && path === part)?.[2];
    if (!change || name === undefined) {
      refuse(405, 'this cannot be done here');
      return;
    }
    try {
      const body = await readJson(request, MAX_BODY);
      for (const machine of chosen ? [chosen] : fleet.machines) await change(machine, body);
    } catch (error) {
      refuse(400, reasonOf(error));
      return;
    }
    sendJson(response, 200, chosen ? summary(chosen) : { machines: fleet.machines.length });
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void =>
    void answer(request, response).catch((error: unknown) => {
      log.warn('a request to the simulator failed', { error: reasonOf(error) });
      response.destroy();
    });
  return listenOn(createServer(listener), port, host);
}
