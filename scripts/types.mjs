// npm run types: writes model/fields.ts from openapi.yaml. With --check: writes nothing, and fails if the file is outdated.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { cliArguments } from './cli-arguments.mjs';

const { check } = cliArguments({
  command: 'npm run types',
  usage: '[--check]',
  about: 'Writes model/fields.ts from openapi.yaml.',
  options: { check: { help: 'write nothing; fail if the file is outdated' } },
});

const root = join(import.meta.dirname, '..');
const target = join(root, 'model/fields.ts');
const { components } = parse(readFileSync(join(root, 'openapi.yaml'), 'utf8'), { maxAliasCount: -1 });

/** The schemas whose columns are the fields of the document: resources that clients create, and the history of nodes. */
const isCreated = ({ properties = {}, ...schema }) =>
  !schema['x-not-stored'] && Object.values(properties).some((field) => field['x-create']);
const RESOURCES = Object.keys(components.schemas).filter((name) => name === 'HistoryEntry' || isCreated(components.schemas[name]));
const KINDS = { string: 'text', boolean: 'boolean', integer: 'integer', object: 'json', array: 'texts' };
const TYPES = { text: 'string', time: 'string', boolean: 'boolean', integer: 'number', json: 'JsonObject', texts: 'readonly string[]' };
const isObjectList = (field) => field.type === 'array' && field.items.type === 'object';
const kindOf = (field) => (field.format === 'date-time' ? 'time' : isObjectList(field) ? 'json' : KINDS[field.type]);
const typeOf = (field) => (isObjectList(field) ? 'readonly JsonObject[]' : TYPES[kindOf(field)]);
/** Objects and lists are stored empty rather than as null, and every record has a UUID. */
const mayBeNull = (name, field) =>
  field.nullable && name !== 'uuid' && !field['x-never-null'] && !['json', 'texts'].includes(kindOf(field));

/** The stored fields of a resource: the kinds of their columns, and their types. */
function resource(name) {
  const stored = Object.entries(components.schemas[name].properties).filter(
    ([, field]) => !field['x-hidden'] && !field['x-links'] && !field['x-computed'],
  );
  const constant = name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  return [
    `export const ${constant}_FIELDS = {`,
    ...stored.map(([field, row]) => `  ${field}: '${kindOf(row)}',`),
    '} as const;',
    `export interface ${name}Fields {`,
    ...stored.map(([field, row]) => `  readonly ${field}: ${typeOf(row)}${mayBeNull(field, row) ? ' | null' : ''};`),
    '}',
  ].join('\n');
}

const text = `// Generated from openapi.yaml by \`npm run types\`: do not edit.
import type { JsonObject } from './json';

${RESOURCES.map(resource).join('\n\n')}
`;

if (check) {
  if (readFileSync(target, 'utf8') === text) process.exit(0);
  console.error('model/fields.ts does not match openapi.yaml: run "npm run types"');
  process.exit(1);
}
writeFileSync(target, text);
