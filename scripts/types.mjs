// npm run types: model/fields.d.ts from openapi.yaml. With --check: writes nothing, fails when it would.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { cliArguments } from './cli-arguments.mjs';

const { check } = cliArguments({
  command: 'npm run types',
  usage: '[--check]',
  about: 'Writes model/fields.d.ts from openapi.yaml.',
  options: { check: { help: 'write nothing; fail when it would be another' } },
});

const root = join(import.meta.dirname, '..');
const target = join(root, 'model/fields.d.ts');
const { components } = parse(readFileSync(join(root, 'openapi.yaml'), 'utf8'), { maxAliasCount: -1 });

const RESOURCES = ['Node', 'Port', 'Driver', 'Conductor'];
const PLAIN = { string: 'string', boolean: 'boolean', integer: 'number', object: 'JsonObject' };
function typeOf(field) {
  const plain = field['x-links'] ? 'readonly Link[]' : field.type === 'array' ? `readonly ${PLAIN[field.items.type]}[]` : PLAIN[field.type];
  return field.nullable ? `${plain} | null` : plain;
}
/** A resource as answers show it, and the names of what is kept of it. */
function resource(name) {
  const fields = Object.entries(components.schemas[name].properties).filter(([, field]) => !field['x-hidden']);
  const shown = fields.map(([field, row]) => `  readonly ${field}: ${typeOf(row)};${row['x-since'] ? ` // 1.${row['x-since']}` : ''}`);
  const kept = fields.filter(([, field]) => !field['x-links'] && !field['x-computed']).map(([field]) => `'${field}'`);
  return (
    [`export interface ${name}Fields {`, ...shown, '}', `export type ${name}Column =`, ...kept.map((one) => `  | ${one}`)].join('\n') + ';'
  );
}

const text = `// Generated from openapi.yaml by \`npm run types\`: do not edit.
import type { JsonObject } from './records';

export interface Link {
  readonly href: string;
  readonly rel: string;
  readonly type?: string;
}
${RESOURCES.map(resource).join('\n\n')}
`;

if (check) {
  if (readFileSync(target, 'utf8') === text) process.exit(0);
  console.error('model/fields.d.ts is not what openapi.yaml says: run "npm run types"');
  process.exit(1);
}
writeFileSync(target, text);
