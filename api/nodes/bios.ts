/** /v1/nodes/X/bios: the BIOS settings of a node, as the database has them. */
import { invalidParameter, Fault } from '../../model/errors';
import { repr } from '../../model/python';
import type { BiosSettingRecord } from '../../model/records';
import { linksTo } from '../pipeline/present';
import { refuseWord } from '../pipeline/resource';
import { nodeOf } from '../pipeline/node-find';
import type { Answer, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

/** The version from which the attribute registry's fields of a setting are shown. */
const REGISTRY_SINCE = 74;
const BRIEF = ['name', 'value'];
/** With the fields of the attribute registry. */
const DETAILED = [
  'name',
  'value',
  'attribute_type',
  'allowable_values',
  'lower_bound',
  'max_length',
  'min_length',
  'read_only',
  'reset_required',
  'unique',
  'upper_bound',
];
/** Fields that `fields` may name, in the order of the error message. */
const SELECTABLE = [
  'allowable_values',
  'attribute_type',
  'created_at',
  'lower_bound',
  'links',
  'max_length',
  'min_length',
  'name',
  'node_uuid',
  'read_only',
  'reset_required',
  'unique',
  'updated_at',
  'value',
];

type ShownSetting = Record<string, unknown>;
/** Times and links are always shown. `ident`: the node's identifier in links. */
function present(setting: BiosSettingRecord, nodeUuid: string, ident: string, fields: readonly string[], base: string): ShownSetting {
  const record: ShownSetting = { ...setting, allowable_values: setting.allowable_values ?? [], node_uuid: nodeUuid };
  const chosen = fields.filter((field) => Object.hasOwn(record, field)).map((field): [string, unknown] => [field, record[field]]);
  return {
    created_at: setting.created_at,
    updated_at: setting.updated_at,
    ...Object.fromEntries(chosen),
    links: linksTo(base, `nodes/${ident}/bios/${setting.name}`),
  };
}

async function listBiosSettings(request: RequestOf<'listBiosSettings'>, context: ApiContext): Promise<Answer> {
  const { query, base, params, minor } = request;
  const early = minor < REGISTRY_SINCE ? ['detail', 'fields'].filter((name) => Object.hasOwn(query, name)) : [];
  if (early.length > 0)
    throw invalidParameter(
      `Schema error: Additional properties are not allowed (${early.map(repr).join(', ')} ${early.length === 1 ? 'was' : 'were'} unexpected)`,
    );
  const { fields, detail } = query;
  const unknown = fields?.find((field) => !SELECTABLE.includes(field));
  if (unknown !== undefined) refuseWord(unknown, SELECTABLE);
  const node = await nodeOf(request, context, 'node:bios:get');
  if (detail === true && fields?.length) throw invalidParameter('Can not specify ?detail=True and fields in the same request.');
  const shown = detail === true ? DETAILED : (fields ?? BRIEF);
  const settings = await context.store.biosSettings.ofNode(node.uuid);
  return { status: 200, body: { bios: settings.map((setting) => present(setting, node.uuid, params.node_ident, shown, base)) } };
}

async function showBiosSetting(request: RequestOf<'showBiosSetting'>, context: ApiContext): Promise<Answer> {
  const { minor, base, params } = request;
  const name = params.setting_name;
  if (!/^[A-Z0-9-._~]+$/i.test(name)) throw invalidParameter(`Schema error: ${repr(name)} does not match '(?i)^[A-Z0-9-._~]+$'`);
  const node = await nodeOf(request, context, 'node:bios:get');
  const setting = (await context.store.biosSettings.ofNode(node.uuid)).find((candidate) => candidate.name === name);
  if (!setting) throw new Fault('BIOSSettingNotFound', { node: node.uuid, name });
  return { status: 200, body: { [name]: present(setting, node.uuid, node.uuid, minor < REGISTRY_SINCE ? BRIEF : DETAILED, base) } };
}

export const biosHandlers = { listBiosSettings, showBiosSetting } satisfies SomeHandlers;
