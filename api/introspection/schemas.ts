/** The schemas of the introspection service's requests and responses, for its OpenAPI document. */
import { ACTIONS, CONDITIONS } from '../../model/rules/introspection-rules';
import { INTROSPECTION_STATES } from '../../model/introspection';

export type Schema = Readonly<Record<string, unknown>>;
const object = (properties: Readonly<Record<string, Schema>>, required: readonly string[] = Object.keys(properties)): Schema => ({
  type: 'object',
  properties,
  required,
});
export const text: Schema = { type: 'string' };
const textOrNull: Schema = { type: 'string', nullable: true };
const listOf = (items: Schema): Schema => ({ type: 'array', items });
export const reference = (name: SchemaName): Schema => ({ $ref: `#/components/schemas/${name}` });
const links = listOf(object({ href: text, rel: text }));
/** Each operator or action adds members of its own. */
const oneOf = (member: string, names: readonly string[]): Schema => object({ [member]: { type: 'string', enum: names } });
const CONDITION = { ...oneOf('op', Object.keys(CONDITIONS)), description: 'With field (data://… or node://…), value, multiple, invert.' };
const ACTION = { ...oneOf('action', Object.keys(ACTIONS)), description: 'With the arguments of the action.' };
const RULE = { uuid: text, description: textOrNull, scope: textOrNull, conditions: listOf(CONDITION), actions: listOf(ACTION) };

/** Bodies of requests and responses, by name. */
export const SCHEMAS = {
  Root: object({ versions: listOf(object({ id: text, status: text, links })) }),
  Version: object({ resources: listOf(object({ name: text, links })) }),
  Introspection: object({
    uuid: text,
    finished: { type: 'boolean' },
    state: { type: 'string', enum: INTROSPECTION_STATES },
    started_at: text,
    finished_at: textOrNull,
    error: textOrNull,
    links,
  }),
  Introspections: object({ introspection: listOf({ $ref: '#/components/schemas/Introspection' }) }),
  Report: {
    ...object({ inventory: { type: 'object' }, boot_interface: text, error: textOrNull }, []),
    description: 'The report of a ramdisk, with the members that its collectors add.',
  },
  Recognized: object({ uuid: text }),
  Data: { type: 'object', description: 'The report, unprocessed or after the hooks ran.' },
  Accepted: { type: 'object', maxProperties: 0 },
  NewRule: object(RULE, ['actions']),
  BriefRule: object({ uuid: text, description: textOrNull, scope: textOrNull, links }),
  Rule: object({ ...RULE, links }),
  Rules: object({ rules: listOf({ $ref: '#/components/schemas/BriefRule' }) }),
  Document: { type: 'object', description: 'This document.' },
  Refusal: object({ error: object({ message: text }) }),
} as const satisfies Readonly<Record<string, Schema>>;
export type SchemaName = keyof typeof SCHEMAS;
