// npm run types: writes model/fields.ts and api/schema/operations.ts from openapi.yaml and introspection.yaml, and migrations/index.ts from the
// files beside it. With --check: writes nothing, and fails if a file is outdated.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { cliArguments } from './cli-arguments.mjs';
import { operationTypes } from './types/operations.mjs';

const { check } = cliArguments({
  command: 'npm run types',
  usage: '[--check]',
  about: 'Writes model/fields.ts and api/schema/operations.ts from the OpenAPI documents, and migrations/index.ts from the migrations.',
  options: { check: { help: 'write nothing; fail if a file is outdated' } },
});

const root = join(import.meta.dirname, '..');
/** @param {string} name */
const documentOf = (name) => parse(readFileSync(join(root, name), 'utf8'), { maxAliasCount: -1 });
const document = documentOf('openapi.yaml');
const { components, info } = document;

/** The schemas whose columns are the fields of the document: resources that clients create, and what the server itself records. */
const RECORDED = ['HistoryEntry', 'Erasure'];
const isCreated = ({ properties = {} }) => Object.values(properties).some((field) => field['x-create']);
const RESOURCES = Object.keys(components.schemas).filter((name) => RECORDED.includes(name) || isCreated(components.schemas[name]));
const KINDS = /** @type {const} */ ({ string: 'text', boolean: 'boolean', integer: 'integer', object: 'json', array: 'texts' });
const TYPES = { text: 'string', time: 'string', boolean: 'boolean', integer: 'number', json: 'JsonObject', texts: 'readonly string[]' };
/** @typedef {Record<string, any> & { type: keyof typeof KINDS }} Field of a schema */
/** @param {Field} field */
const isObjectList = (field) => field.type === 'array' && field['items'].type === 'object';
/** @param {Field} field @returns {keyof typeof TYPES} */
const kindOf = (field) => (field['format'] === 'date-time' ? 'time' : isObjectList(field) ? 'json' : KINDS[field.type]);
/** @param {Field} field */
const typeOf = (field) => (isObjectList(field) ? 'readonly JsonObject[]' : TYPES[kindOf(field)]);
/** Objects and lists are stored empty rather than as null, and every record has a UUID. @param {string} name @param {Field} field */
const mayBeNull = (name, field) =>
  field['nullable'] && name !== 'uuid' && !field['x-never-null'] && !['json', 'texts'].includes(kindOf(field));

/** @param {Record<string, any>} schema @returns {boolean} */
const isLinks = ({ items }) => items !== undefined && (items.$ref?.endsWith('/Link') || isLinks(items));
/** Its value comes from other records. */
const COMPUTED = ['Node.conductor'];

/** The stored fields of a resource: the kinds of their columns, and their types. @param {string} name */
function resource(name) {
  /** @type {[string, Field][]} */
  const fields = Object.entries(components.schemas[name].properties);
  const stored = fields.filter(([field, row]) => !row['writeOnly'] && !isLinks(row) && !COMPUTED.includes(`${name}.${field}`));
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

const fields = `// Generated from openapi.yaml by \`npm run types\`: do not edit.
import type { JsonObject } from './json';

/** The newest microversion is 1.N. */
export const NEWEST_MINOR = ${info.version.split('.')[1]};

${RESOURCES.map(resource).join('\n\n')}
`;

/** The folder of ten migrations has the first three digits of their numbers. @param {string} name */
const pathOf = (name) => `${name.slice(0, 3)}/${name}`;
const found = readdirSync(join(root, 'migrations'), { recursive: true, encoding: 'utf8' })
  .filter((file) => /^\d{3}\/\d{4}_\w+\.ts$/.test(file))
  .map((file) => file.replace('.ts', ''))
  .toSorted();
const names = found.map((path) => path.slice('000/'.length));
const elsewhere = found.find((path, index) => path !== pathOf(names[index] ?? ''));
if (elsewhere !== undefined) throw new Error(`migrations/${elsewhere}.ts belongs into the folder of its first three digits`);
/** `0002_whole_api`: `wholeApi`. @param {string} name */
const functionOf = (name) => name.replace(/^\d+_/, '').replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const migrations = `// Generated from the files in these folders by \`npm run types\`: do not edit.
import type { Knex } from 'knex';
${names.map((name) => `import { up as ${functionOf(name)} } from './${pathOf(name)}';`).join('\n')}

export interface Migration {
  readonly name: string;
  /** Runs inside a transaction. */
  up(knex: Knex): Promise<void>;
}

/**
 * The migrations of the schema, forward only: one file each, in the order of their numbers. A released migration never changes; a later one
 * corrects it. Each folder has ten numbers. Names have no extension, because the same migrations run from TypeScript and from the build.
 */
export const MIGRATIONS: readonly Migration[] = [
${names.map((name) => `  { name: '${name}', up: ${functionOf(name)} },`).join('\n')}
];
`;

const operations = operationTypes(document, documentOf('introspection.yaml'));
const files = { 'model/fields.ts': fields, 'api/schema/operations.ts': operations, 'migrations/index.ts': migrations };
/** @param {string} path */
const textOf = (path) => (existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : undefined);
const outdated = Object.entries(files).filter(([path, text]) => textOf(path) !== text);
if (check) {
  for (const [path] of outdated) console.error(`${path} is outdated: run "npm run types"`);
  process.exit(outdated.length === 0 ? 0 : 1);
}
for (const [path, text] of outdated) writeFileSync(join(root, path), text);
