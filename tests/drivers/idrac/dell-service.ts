/** What an iDRAC has beside the standard's resources, for a test's Redfish service: its services, jobs and controllers. */
import type { ServerResponse } from 'node:http';
import { SYSTEM, redfishError, type RedfishReply, type RedfishRequest, type RedfishService } from '../../wire/redfish/service';

export const MANAGER = '/redfish/v1/Managers/iDRAC.Embedded.1';
const DELL = `${MANAGER}/Oem/Dell`;
const link = (path: string): object => ({ '@odata.id': path });
const JOBS = {
  clear: `${DELL}/DellJobService/Actions/DellJobService.DeleteJobQueue`,
  reset: `${DELL}/DelliDRACCardService/Actions/DelliDRACCardService.iDRACReset`,
  ready: `${DELL}/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus`,
  import: `${MANAGER}/Actions/Oem/EID_674_Manager.ImportSystemConfiguration`,
  export: `${MANAGER}/Actions/Oem/EID_674_Manager.ExportSystemConfiguration`,
  convert: `${SYSTEM}/Oem/Dell/DellRaidService/Actions/DellRaidService.ConvertToRAID`,
  foreign: `${SYSTEM}/Oem/Dell/DellRaidService/Actions/DellRaidService.ClearForeignConfig`,
} as const;
type DellAction = keyof typeof JOBS;
const serviceOf = (path: string): string => path.split('/Actions/', 1)[0]!;
const actionsOf = (...paths: readonly string[]): object => ({
  Actions: Object.fromEntries(paths.map((path) => [`#${path.split('/').at(-1)!}`, { target: path }])),
});

export const taskPath = (job: string): string => `/redfish/v1/TaskService/Tasks/${job}`;
/** 400 with a message of the iDRAC's own registry. */
export const refusal = (id: string): RedfishReply => {
  const body = redfishError(`refused with ${id}`) as { error: { '@Message.ExtendedInfo': object[] } };
  body.error['@Message.ExtendedInfo'] = [{ MessageId: `IDRAC.2.8.${id}`, Message: `refused with ${id}` }];
  return { status: 400, body };
};

export interface DellService {
  /** The bodies of the requests for an action. */
  asked(action: DellAction): readonly unknown[];
  /** Answers of actions, one for each request; the last one stays. Absent: 200. */
  readonly answers: Partial<Record<DellAction, RedfishReply[]>>;
  /** The answers of requests that no action takes; undefined: the resource answers. */
  other: (asked: RedfishRequest, response: ServerResponse) => RedfishReply | 'hang' | undefined;
}
/** Makes the service that of a Dell machine. */
export function dellService(service: RedfishService, manager: object = {}): DellService {
  const system = service.resources[SYSTEM] as Record<string, unknown>;
  Object.assign(system, {
    Links: { ManagedBy: [link(MANAGER)], Oem: { Dell: { DellRaidService: link(serviceOf(JOBS.convert)) } } },
  });
  Object.assign(service.resources, {
    [MANAGER]: {
      '@odata.id': MANAGER,
      Id: 'iDRAC.Embedded.1',
      Model: '15G Monolithic',
      FirmwareVersion: '5.10.50.00',
      ManagerType: 'BMC',
      Links: {
        Oem: {
          Dell: {
            DellAttributes: ['System.Embedded.1', 'iDRAC.Embedded.1'].map((id) => link(`${DELL}/DellAttributes/${id}`)),
            DellJobService: link(serviceOf(JOBS.clear)),
            DelliDRACCardService: link(serviceOf(JOBS.reset)),
            DellLCService: link(serviceOf(JOBS.ready)),
          },
        },
      },
      Actions: {
        Oem: {
          '#OemManager.v1_4_0.OemManager#OemManager.ImportSystemConfiguration': { target: JOBS.import },
          '#OemManager.v1_4_0.OemManager#OemManager.ExportSystemConfiguration': { target: JOBS.export },
        },
      },
      ...manager,
    },
    [serviceOf(JOBS.clear)]: actionsOf(JOBS.clear),
    [serviceOf(JOBS.reset)]: actionsOf(JOBS.reset),
    [serviceOf(JOBS.ready)]: actionsOf(JOBS.ready),
    [serviceOf(JOBS.convert)]: actionsOf(JOBS.convert, JOBS.foreign),
    [`${DELL}/DellAttributes/iDRAC.Embedded.1`]: { Attributes: { 'VirtualMedia.1.Attached': 'AutoAttach' } },
  });
  const it: DellService = {
    asked: (action) => service.asked.filter(({ path, method }) => method === 'POST' && path === JOBS[action]).map(({ body }) => body),
    answers: { ready: [{ status: 200, body: { LCStatus: 'Ready', RTStatus: 'Ready' } }] },
    other: () => undefined,
  };
  service.reply = (asked, response) => {
    const action = (Object.keys(JOBS) as DellAction[]).find((name) => JOBS[name] === asked.path);
    if (asked.method !== 'POST' || action === undefined) return it.other(asked, response);
    const answers = it.answers[action] ?? [{ status: 200, body: {} }];
    return answers.length > 1 ? answers.shift() : answers[0];
  };
  return it;
}
