/** User data that the programs of machines refuse, and data that they take. tests/lab/deployment/image-kinds.test.ts asks these programs. */
import { userDataProblem } from '../../api/nodes/user-data';
import { cpuMsOf } from '../support/cpu-time';

const secret = 'hunter2';
it.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['a list', ['a']],
  ['an object of another kind', { users: [] }],
  ['a script', '#!/bin/sh\necho {'],
  ['JSON that is no Ignition config', '{"a": '],
  ['Ignition 3.4.0', '{"ignition": {"version": "3.4.0"}}'],
  ['Ignition of a later version', { ignition: { version: '3.12.0' } }],
  ['Ignition of an experimental version', { ignition: { version: '3.6.0-experimental' } }],
  ['Ignition 2.3.0', ' \n{"ignition": {"version": "2.3.0"}, "storage": {}}'],
  ['JSON that names Ignition elsewhere', '{"about": "\\"ignition\\""}'],
  ['a cloud-config', '#cloud-config\nusers:\n  - name: a\n    name: b\n    x: !other 1\nb: &x [1]\nc: *x\n'],
  ['an empty cloud-config', '#cloud-config\n'],
  ['a template', '## template: jinja\n#cloud-config\na: {{ v1.x }}: :\n'],
  ['a list over lines without an indent', '#cloud-config\npackages: [\na,\nb]\n'],
  ['a list in a list', '#cloud-config\nruncmd:\n- [a,\nb]\n'],
  ['a text over lines without an indent', '#cloud-config\na: "x\ny"\nb: \'x\ny\'\n'],
  ['a cloud-config of many levels', `#cloud-config\n${'['.repeat(8000)}${']'.repeat(8000)}`],
  ['a longer cloud-config than is read', `#cloud-config\n${'# a\n'.repeat(20_000)}a: b: c\n`],
])('accepts %s', (_, data) => {
  expect(userDataProblem(data)).toBeUndefined();
});

it.each<[string, unknown, string]>([
  [
    'Ignition that is no JSON',
    `{"ignition": {"version": "3.4.0"}, "x": ${secret}}`,
    'user_data is an Ignition config that is not valid JSON',
  ],
  ['Ignition without a version', { ignition: {} }, 'user_data is an Ignition config with no version'],
  ['Ignition 1', '{"ignition": {"version": 1}}', 'with the version 1: ignition.version must be 2.0.0 to 2.4.0, or 3.0.0 and later 3.x.0'],
  ['Ignition 4.0.0', '{"ignition": {"version": "4.0.0"}}', 'with the version "4.0.0"'],
  ['Ignition 3.4', { ignition: { version: '3.4' } }, 'with the version "3.4"'],
  ['Ignition that is no object', { ignition: [] }, 'with no version'],
  [
    'a cloud-config that is no YAML',
    `#cloud-config\npassword: ${secret}\na: b: c\n`,
    'user_data is a #cloud-config that is not valid YAML (line 3: ',
  ],
  ['a cloud-config with a tab', '#cloud-config\na:\n\tb: 1\n', 'not valid YAML (line 3: TAB_AS_INDENT)'],
  ['a cloud-config that is not closed', '#cloud-config\na: [1, 2\n', 'not valid YAML'],
])('refuses %s, without quoting it', (_, data, problem) => {
  const found = userDataProblem(data);
  expect(found).toContain(problem);
  expect(found).not.toContain(secret);
});

it.each(['[', '{a: ', '? ', '- ', '&a ', '*a ', '"', '|\n', 'a: ', '!!a '])('reads 16 KiB of %j in a short time', async (piece) => {
  const text = `#cloud-config\n${piece.repeat(20_000)}`.slice(0, 2 ** 14);
  expect(await cpuMsOf(() => userDataProblem(text), 500)).toBeLessThan(500);
});
