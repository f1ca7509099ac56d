/** The flows by the name that `STATES` gives them. */
import type { FlowName } from '../../model/states';
import { adopt } from './adopt';
import { clean } from './clean';
import { deploy } from './deploy';
import type { Flow } from './flow';
import { inspect } from './inspect';
import { rescue } from './rescue';
import { service } from './service';
import { undeploy } from './undeploy';
import { unrescue } from './unrescue';
import { verify } from './verify';

export const FLOWS: Readonly<Record<FlowName, Flow>> = { verify, inspect, deploy, undeploy, clean, service, rescue, unrescue, adopt };
