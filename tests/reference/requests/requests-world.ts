/** The two nodes and two ports that requests use, and identifiers that do not exist. */
import { send, type Step } from './steps';

export const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
export const SECOND = 'aaaaaaaa-0000-4000-8000-000000000002';
export const NEW = 'aaaaaaaa-0000-4000-8000-0000000000ff';
export const PORT = 'bbbbbbbb-0000-4000-8000-000000000001';
export const NEW_PORT = 'bbbbbbbb-0000-4000-8000-0000000000ff';
export const NOBODY = 'cccccccc-0000-4000-8000-000000000000';
export const MAC = '52:54:00:00:00:01';

/** Two nodes and two ports that the other requests use. */
export const setup: Step[] = [
  send('POST', '/v1/nodes', {
    driver: 'fake-hardware',
    name: 'one',
    uuid: NODE,
    driver_info: { ipmi_password: 'x', a: { token: 'y', b: [1] } },
  }),
  send('POST', '/v1/nodes', {
    driver: 'fake-hardware',
    name: 'two',
    uuid: SECOND,
    resource_class: 'big',
    description: 'the second',
    shard: 'left',
  }),
  send('POST', '/v1/ports', { address: MAC, node_uuid: NODE, uuid: PORT, name: 'eth0', description: 'first port' }),
  send('POST', '/v1/ports', { address: '52:54:00:00:00:02', node_ident: 'two', uuid: 'bbbbbbbb-0000-4000-8000-000000000002' }),
];

/** An operation of a JSON patch. */
export const op = (name: string, path: string, value?: unknown): object => ({ op: name, path, ...(value === undefined ? {} : { value }) });
