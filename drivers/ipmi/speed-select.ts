/** Intel's Speed Select (SST-PP): a performance profile of the processors, which their BMC sets by a command of Intel's. */
import { invalidParameter, reasonOf, Fault } from '../../model/errors';
import { repr, str, toInteger } from '../../model/python';
import type { JsonObject } from '../../model/records';
import { done, type ManagementInterface } from '../interfaces';
import { ipmiManagement } from './management';
import { ipmiCommand } from './target';

/** The profiles, as the command has them. */
const PROFILES = ['0x00', '0x01', '0x02'] as const;
/** The command names a socket by one hexadecimal digit. */
const MAX_SOCKETS = 10;
/** Group extension, and its command for Speed Select. */
const COMMAND = [0x2c, 0x41] as const;

/** Throws InvalidParameterValue, in Ironic's words. */
function requested({ intel_speedselect_config: profile, socket_count: count = 1 }: JsonObject): {
  readonly profile: string;
  readonly sockets: number;
} {
  if (!PROFILES.some((candidate) => candidate === profile))
    throw invalidParameter(`Invalid Intel SST-PP configuration value ${str(profile)} specified. Valid values are ${repr([...PROFILES])}.`);
  const sockets = toInteger(count);
  if (sockets === undefined || sockets <= 0)
    throw invalidParameter(`Invalid number of socket ${str(count)} value specified. Expected a positive integer.`);
  if (sockets > MAX_SOCKETS) throw invalidParameter(`socket_count ${sockets} is too large: the command knows ${MAX_SOCKETS} sockets`);
  return { profile: profile as string, sockets };
}

export const intelIpmiManagement: ManagementInterface = {
  ...ipmiManagement,
  steps: [
    ...(ipmiManagement.steps ?? []),
    {
      step: 'configure_intel_speedselect',
      priority: { deploy: 200 },
      args: {
        intel_speedselect_config: {
          description: `Hexadecimal code of Intel SST-PP configuration provided. Input value should be string. Accepted values are ${PROFILES.join(', ')}.`,
          required: true,
        },
        socket_count: { description: 'Number of sockets. Input value should be a positive integer.' },
      },
      checkArguments: (args) => void requested(args),
      run: async (task, args) => {
        // The step is one of each deployment. Without a profile, there is nothing to set.
        if (args['intel_speedselect_config'] === undefined) return done;
        const { profile, sockets } = requested(args);
        for (let socket = 0; socket < sockets; socket++)
          try {
            const data = [0x04, 0x00, socket, Number(profile)];
            await ipmiCommand(task, `raw 0x2c 0x41 0x04 0x00 0x0${socket} ${profile}`, COMMAND, ...data);
          } catch (error) {
            if (!(error instanceof Fault)) throw error;
            throw new Fault(
              'DriverOperationError',
              {
                message: `Failed to set Intel SST-PP configuration level ${profile} on socket number ${socket} due to reason ${reasonOf(error)}.`,
              },
              { cause: error },
            );
          }
        return done;
      },
    },
  ],
};
