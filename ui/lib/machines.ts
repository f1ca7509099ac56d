/** Adds machines: the fields of each hardware type, and the requests to the API. Pure, except for the API that is passed in. */
import type { Api } from './api';

interface MachineField {
  readonly name: string;
  readonly title: string;
  readonly type: 'text' | 'password';
  readonly needed?: true;
}
const bmcFields = (prefix: string): readonly MachineField[] => [
  { name: `${prefix}_address`, title: 'Address of the BMC', type: 'text', needed: true },
  { name: `${prefix}_username`, title: 'User', type: 'text' },
  { name: `${prefix}_password`, title: 'Password', type: 'password' },
];
/** Hardware type → the fields of driver_info in the form. Other hardware types have no fields. */
export const DRIVER_FIELDS: Readonly<Record<string, readonly MachineField[]>> = {
  redfish: [
    ...bmcFields('redfish'),
    { name: 'redfish_system_id', title: 'System ID, if the BMC has several systems', type: 'text' },
    { name: 'redfish_verify_ca', title: 'Verify the certificate: true, false or a file', type: 'text' },
  ],
  ipmi: [...bmcFields('ipmi'), { name: 'ipmi_port', title: 'Port, if it is not 623', type: 'text' }],
};
const COMMON = ['name', 'driver', 'macs', 'owner', 'resource_class'];
const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i;

/** The node and the ports that a form's values describe. @throws Error for an invalid MAC address */
export function machineIn(values: Readonly<Record<string, string>>): { readonly node: object; readonly macs: readonly string[] } {
  const given = Object.entries(values).filter(([, value]) => value.trim() !== '');
  const own = Object.fromEntries(given.filter(([name]) => !COMMON.includes(name)).map(([name, value]) => [name, value.trim()]));
  const fields = Object.fromEntries(given.filter(([name]) => COMMON.includes(name) && name !== 'macs'));
  const macs = (values['macs'] ?? '').split(/[\s,]+/).filter(Boolean);
  const wrong = macs.find((mac) => !MAC.test(mac));
  if (wrong !== undefined) throw new Error(`${wrong} is not a MAC address`);
  return { node: { ...fields, driver_info: own }, macs };
}
/** Creates the node and its ports, and lets the server verify the BMC. @returns the UUID of the new node */
export async function addMachine(api: Api, { node, macs }: ReturnType<typeof machineIn>): Promise<string> {
  const { uuid } = await api.send<{ readonly uuid: string }>('POST', 'v1/nodes', node);
  for (const address of macs) await api.send('POST', 'v1/ports', { node_uuid: uuid, address });
  await api.send('PUT', `v1/nodes/${uuid}/states/provision`, { target: 'manage' });
  return uuid;
}
/** Writes a form's values to a node in enroll, and lets the server verify the BMC. Fields that are empty in the form stay unchanged. */
export async function acceptMachine(api: Api, uuid: string, { name = '', ...values }: Readonly<Record<string, string>>): Promise<void> {
  const patch = [
    ...(name.trim() === '' ? [] : [{ op: 'add', path: '/name', value: name.trim() }]),
    ...Object.entries(values)
      .filter(([, value]) => value.trim() !== '')
      .map(([field, value]) => ({ op: 'add', path: `/driver_info/${field}`, value: value.trim() })),
  ];
  if (patch.length > 0) await api.send('PATCH', `v1/nodes/${uuid}`, patch);
  await api.send('PUT', `v1/nodes/${uuid}/states/provision`, { target: 'manage' });
}
