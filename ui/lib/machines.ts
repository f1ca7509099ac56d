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
const REDFISH_FIELDS: readonly MachineField[] = [
  ...bmcFields('redfish'),
  { name: 'redfish_system_id', title: 'System ID, if the BMC has several systems', type: 'text' },
  { name: 'redfish_verify_ca', title: 'Verify the certificate: true, false or a file', type: 'text' },
];
const IPMI_FIELDS: readonly MachineField[] = [...bmcFields('ipmi'), { name: 'ipmi_port', title: 'Port, if it is not 623', type: 'text' }];
/** Hardware type → the fields of driver_info in the form. Other hardware types have no fields. */
export const DRIVER_FIELDS: Readonly<Record<string, readonly MachineField[]>> = {
  redfish: REDFISH_FIELDS,
  idrac: REDFISH_FIELDS,
  ipmi: IPMI_FIELDS,
  'intel-ipmi': IPMI_FIELDS,
};
const COMMON = ['name', 'driver', 'macs', 'owner', 'resource_class'];
/** Pairs with colons, hyphens or nothing between them, or groups of four with dots. */
const MAC = /^(?:[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}|[0-9a-f]{12})$/i;
/** In the spelling that the API takes. @throws Error */
function macOf(text: string): string {
  if (!MAC.test(text)) throw new Error(`MAC addresses: ${text} is not a MAC address`);
  return text
    .toLowerCase()
    .replace(/[^0-9a-f]/g, '')
    .replace(/..(?!$)/g, '$&:');
}

/** The node and the ports that a form's values describe. @throws Error for an invalid MAC address */
export function machineIn(values: Readonly<Record<string, string>>): { readonly node: object; readonly macs: readonly string[] } {
  const filled = Object.entries(values).filter(([, value]) => value.trim() !== '');
  const own = Object.fromEntries(filled.filter(([name]) => !COMMON.includes(name)).map(([name, value]) => [name, value.trim()]));
  const fields = Object.fromEntries(filled.filter(([name]) => COMMON.includes(name) && name !== 'macs'));
  const given = (values['macs'] ?? '').split(/[\s,;]+/).filter(Boolean);
  return { node: { ...fields, driver_info: own }, macs: [...new Set(given.map(macOf))] };
}
/**
 * Creates the node and its ports, and lets the server verify the BMC. When any of that is refused, the node is removed again.
 * @returns the UUID of the new node
 * @throws the refusal; Error with both reasons if the node cannot be removed
 */
export async function addMachine(api: Api, { node, macs }: ReturnType<typeof machineIn>): Promise<string> {
  const { uuid } = await api.send<{ readonly uuid: string }>('POST', 'v1/nodes', node);
  try {
    for (const address of macs) await api.send('POST', 'v1/ports', { node_uuid: uuid, address });
    await api.send('PUT', `v1/nodes/${uuid}/states/provision`, { target: 'manage' });
  } catch (refusal) {
    await api.send('DELETE', `v1/nodes/${uuid}`).catch((left: unknown) => {
      throw new Error(`${(refusal as Error).message} The node ${uuid} is left, since it cannot be removed: ${(left as Error).message}`, {
        cause: refusal,
      });
    });
    throw refusal;
  }
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
