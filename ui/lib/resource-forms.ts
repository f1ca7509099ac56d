/** The forms of resources: their fields, the texts in the fields, and the resource that results. The API checks it again. Pure. */
import type { JsonObject } from '../../model/json';
import { ACTIONS, checkedRule, OPERATORS, type RuleStep } from '../../model/rules/inspection-rules';

interface Cell {
  readonly name: string;
  readonly title: string;
  readonly kind: 'text' | 'number' | 'json';
  readonly needed?: true;
  /** The allowed values. Absent: any value. */
  readonly choices?: readonly string[];
  /** The text in a new row. */
  readonly initial?: string;
}
export interface FormField extends Omit<Cell, 'kind'> {
  readonly kind: Cell['kind'] | 'flag' | 'rows';
  /** The columns; only of the kind `rows`. */
  readonly columns?: readonly Cell[];
}
export type RowTexts = Readonly<Record<string, string>>;
export interface FormTexts {
  readonly fields: RowTexts;
  readonly rows: Readonly<Record<string, readonly RowTexts[]>>;
}
/** Place of a mistake → what is wrong. The place is a field, or `FIELD ROW COLUMN` with rows from 1 on. */
export type Mistakes = Readonly<Record<string, string>>;

const INTERFACES = ['bios', 'deploy', 'firmware', 'management', 'power', 'raid', 'vendor'];
const stepColumns = (rank: string): readonly Cell[] => [
  { name: 'interface', title: 'interface', kind: 'text', needed: true, choices: INTERFACES, initial: 'deploy' },
  { name: 'step', title: 'step', kind: 'text', needed: true },
  { name: 'args', title: 'arguments (JSON)', kind: 'json', needed: true, initial: '{}' },
  { name: rank, title: rank, kind: 'number', needed: true },
];
const ruleColumns = (operators: readonly string[], more: readonly Cell[] = []): readonly Cell[] => [
  { name: 'op', title: 'operator', kind: 'text', needed: true, choices: operators, initial: operators[0]! },
  { name: 'args', title: 'arguments (JSON)', kind: 'json', needed: true, initial: '{}' },
  { name: 'loop', title: 'loop (JSON)', kind: 'json' },
  ...more,
];
const CONDITIONS = Object.keys(OPERATORS).flatMap((name) => [name, `!${name}`]);
const NAME: FormField = { name: 'name', title: 'Name', kind: 'text', needed: true };
const EXTRA: FormField = { name: 'extra', title: 'Extra (JSON)', kind: 'json' };
/** Resource → its fields. Other resources are edited as JSON. */
export const FORMS: Readonly<Record<string, readonly FormField[]>> = {
  deploy_templates: [
    { ...NAME, title: 'Name: the trait of instances that get these steps' },
    { name: 'steps', title: 'Steps', kind: 'rows', needed: true, columns: stepColumns('priority') },
    EXTRA,
  ],
  images: [
    NAME,
    { name: 'description', title: 'Description', kind: 'text' },
    { name: 'image_source', title: 'Source: a URL (http, https, file, oci), or a UUID in Glance', kind: 'text', needed: true },
    { name: 'image_checksum', title: 'Checksum: the URL of a file with checksums, or a checksum', kind: 'text' },
    { name: 'image_os_hash_algo', title: 'or a hash: its algorithm', kind: 'text', choices: ['', 'sha256', 'sha384', 'sha512'] },
    { name: 'image_os_hash_value', title: 'and its value in hexadecimal', kind: 'text' },
    EXTRA,
  ],
  default_configs: [
    { name: 'resource_class', title: 'Resource class', kind: 'text' },
    { name: 'property', title: 'or a property, such as rack', kind: 'text' },
    { name: 'value', title: 'with this value', kind: 'text' },
    { name: 'node_uuid', title: 'or the UUID of a node', kind: 'text' },
    { name: 'description', title: 'Description', kind: 'text' },
    {
      name: 'steps',
      title: 'Steps',
      kind: 'rows',
      needed: true,
      columns: [...stepColumns('priority').slice(0, 3), { name: 'priority', title: 'priority in automated cleaning', kind: 'number' }],
    },
  ],
  runbooks: [
    NAME,
    { name: 'description', title: 'Description', kind: 'text' },
    { name: 'steps', title: 'Steps', kind: 'rows', needed: true, columns: stepColumns('order') },
    { name: 'owner', title: 'Owner', kind: 'text' },
    { name: 'public', title: 'Public: all projects may use it', kind: 'flag' },
    { name: 'disable_ramdisk', title: 'Disable ramdisk: the steps need no agent', kind: 'flag' },
    EXTRA,
  ],
  inspection_rules: [
    { name: 'description', title: 'Description', kind: 'text' },
    { name: 'priority', title: 'Priority: higher ones are applied first', kind: 'number' },
    { name: 'sensitive', title: 'Sensitive: conditions and actions are never shown again', kind: 'flag' },
    {
      name: 'conditions',
      title: 'Conditions',
      kind: 'rows',
      columns: ruleColumns(CONDITIONS, [
        { name: 'multiple', title: 'multiple', kind: 'text', choices: ['', 'any', 'all', 'first', 'last'] },
      ]),
    },
    { name: 'actions', title: 'Actions', kind: 'rows', needed: true, columns: ruleColumns(Object.keys(ACTIONS)) },
  ],
};

const textOfCell = (kind: FormField['kind'], value: unknown): string => {
  if (value === undefined || value === null) return '';
  return kind === 'json' || typeof value !== 'string' ? JSON.stringify(value) : value;
};
const rowsIn = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? (value as readonly JsonObject[]) : []);
export const textsOf = (fields: readonly FormField[], entry: JsonObject): FormTexts => ({
  fields: Object.fromEntries(fields.filter(({ kind }) => kind !== 'rows').map(({ name, kind }) => [name, textOfCell(kind, entry[name])])),
  rows: Object.fromEntries(
    fields
      .filter(({ kind }) => kind === 'rows')
      .map(({ name, columns = [] }) => [
        name,
        rowsIn(entry[name]).map((row) => Object.fromEntries(columns.map((cell) => [cell.name, textOfCell(cell.kind, row[cell.name])]))),
      ]),
  ),
});
export const newRow = ({ columns = [] }: FormField): RowTexts =>
  Object.fromEntries(columns.map(({ name, initial = '' }) => [name, initial]));

/** @throws Error that says what is wrong with the text */
function valueIn({ kind, needed, choices }: Pick<FormField, 'kind' | 'needed' | 'choices'>, text: string): unknown {
  if (kind === 'flag') return text === 'true';
  const bare = text.trim();
  if (bare === '') {
    if (needed) throw new Error('is required');
    return undefined;
  }
  if (choices && !choices.includes(bare)) throw new Error(`must be one of ${choices.filter(Boolean).join(', ')}`);
  if (kind === 'number') {
    if (!/^\d{1,15}$/.test(bare)) throw new Error('must be a whole number');
    return Number(bare);
  }
  if (kind !== 'json') return bare;
  try {
    return JSON.parse(bare) as unknown;
  } catch {
    throw new Error('is not valid JSON');
  }
}
/** The resource that the texts describe. Fields without a text are left out. */
export function valueOf(fields: readonly FormField[], texts: FormTexts): { readonly value: JsonObject; readonly mistakes: Mistakes } {
  const mistakes: Record<string, string> = {};
  const read = (
    cell: Pick<FormField, 'kind' | 'needed' | 'choices' | 'name'>,
    text: string,
    place: string,
  ): readonly (readonly [string, unknown])[] => {
    try {
      const value = valueIn(cell, text);
      return value === undefined ? [] : [[cell.name, value]];
    } catch (error) {
      mistakes[place] = (error as Error).message;
      return [];
    }
  };
  const entries = fields.flatMap((field) => {
    const { name, kind, needed, columns = [] } = field;
    if (kind !== 'rows') return read(field, texts.fields[name] ?? '', name);
    const rows = texts.rows[name] ?? [];
    if (needed && rows.length === 0) mistakes[name] = 'needs at least one row';
    return [
      [
        name,
        rows.map((row, index) =>
          Object.fromEntries(columns.flatMap((cell) => read(cell, row[cell.name] ?? '', `${name} ${index + 1} ${cell.name}`))),
        ),
      ] as const,
    ];
  });
  return { value: Object.fromEntries(entries), mistakes };
}
/** The mistakes in an inspection rule that the checks of single fields do not find, in the API's words. */
export function ruleMistakes({ conditions, actions, priority }: JsonObject): readonly string[] {
  const steps = (value: unknown): readonly RuleStep[] => (Array.isArray(value) ? (value as readonly RuleStep[]) : []);
  const hasPriority = typeof priority === 'number' ? { priority } : {};
  return checkedRule({ conditions: steps(conditions), actions: steps(actions), ...hasPriority }).wrong;
}
/** The fields whose names appear in an error message of the API. */
export const fieldsNamedIn = (fields: readonly FormField[], message: string): readonly string[] => {
  const words = new Set(message.match(/\w+/g));
  return fields.filter(({ name }) => words.has(name)).map(({ name }) => name);
};

/** Members that the server sets. */
const OWN = ['uuid', 'links', 'created_at', 'updated_at', 'state', 'last_error', 'node_uuid', 'built_in'];
export const withoutServerFields = (entry: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => !OWN.includes(name)));
interface Operation {
  readonly op: 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}
/**
 * The patch that changes `before` to `after`. Members without a value count as absent.
 * @param names the members to compare; absent: all
 */
export function resourcePatch(
  before: JsonObject,
  after: JsonObject,
  names: readonly string[] = Object.keys({ ...before, ...after }),
): readonly Operation[] {
  const isAbsent = (value: unknown): boolean => value === undefined || value === null || (Array.isArray(value) && value.length === 0);
  const isSame = (left: unknown, right: unknown): boolean =>
    (isAbsent(left) && isAbsent(right)) || JSON.stringify(left) === JSON.stringify(right);
  return [...new Set(names)]
    .filter((name) => !OWN.includes(name) && !isSame(before[name], after[name]))
    .map((name) =>
      after[name] === undefined ? { op: 'remove', path: `/${name}` } : { op: 'replace', path: `/${name}`, value: after[name] },
    );
}
