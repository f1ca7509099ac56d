/** A simulated machine behind a Redfish service over TLS, on a real clock, for clients that we did not write. */
import { randomBytes } from 'node:crypto';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { ownCertificate } from '../../../wire/http/certificate';
import { describeMachine, type MachineDescription } from '../../../simulator/hardware/description';
import { openHttpClient } from '../../../simulator/http';
import { createMachine, type SimulatedMachine } from '../../../simulator/machine/machine';
import { serveRedfish } from '../../../simulator/redfish';

const HOST = '127.0.0.1';
export const LOGIN = { username: 'admin', password: 'password' } as const;
export interface SimulatedBmc {
  readonly url: string;
  /** PEM. */
  readonly certificate: string;
  readonly machine: SimulatedMachine;
  close(): Promise<void>;
}
export async function simulatedBmc(description: MachineDescription = describeMachine(0, HOST)): Promise<SimulatedBmc> {
  const http = openHttpClient();
  const shared = { http, clock: systemClock, random: randomBytes, log: silentLog };
  const tls = ownCertificate(HOST, 'bmc', Date.now(), randomBytes);
  const machine = createMachine({
    ...shared,
    description,
    bootUrl: undefined,
    callbackUrl: `https://${HOST}:1`,
    certificate: tls.certificate,
    behaviour: { firmwareMs: 10 },
  });
  const bmc = await serveRedfish({ ...shared, ...LOGIN, host: HOST, port: 0, machines: [machine], tls, taskMs: 500 });
  return {
    url: `https://${HOST}:${bmc.port}`,
    certificate: tls.certificate,
    machine,
    close: async () => {
      await bmc.close();
      await machine.close();
      await http.close();
    },
  };
}
