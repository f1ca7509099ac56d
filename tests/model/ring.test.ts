import type { ConductorRecord } from '../../model/records';
import { conductorOf, periodicConductorOf } from '../../model/ring';

const conductor = (hostname: string, group = ''): ConductorRecord => ({
  id: 1,
  hostname,
  conductor_group: group,
  drivers: { 'fake-hardware': {} as never },
  online: true,
  alive: true,
  locks_valid: true,
  address: null,
  instance: 'i',
  created_at: '2026-01-01T00:00:00.000000+00:00',
  updated_at: '2026-01-01T00:00:00.000000+00:00',
  revision: 1,
});
const node = (uuid: string, group = '') => ({ uuid, driver: 'fake-hardware', conductor_group: group });

it('conductorOf considers only conductors with the group and driver of the node', () => {
  expect(conductorOf([conductor('a', 'rack')], node('x'))).toBeUndefined();
  expect(conductorOf([conductor('a', 'rack')], node('x', 'rack'))?.hostname).toBe('a');
  expect(conductorOf([conductor('a')], { ...node('x'), driver: 'nosuch' })).toBeUndefined();
});

it('conductorOf spreads nodes, and moves only those of a removed conductor', () => {
  const all = ['a', 'b', 'c'].map((name) => conductor(name));
  const uuids = Array.from({ length: 300 }, (_, index) => `node-${index}`);
  const before = uuids.map((uuid) => conductorOf(all, node(uuid))!.hostname);
  for (const name of ['a', 'b', 'c']) expect(before.filter((candidate) => candidate === name).length).toBeGreaterThan(60);
  const after = uuids.map((uuid) => conductorOf(all.slice(0, 2), node(uuid))!.hostname);
  expect(uuids.filter((_, index) => before[index] !== 'c' && before[index] !== after[index])).toEqual([]);
});

it('periodicConductorOf assigns nodes whose driver no conductor supports to a conductor of their group', () => {
  const lost = { ...node('x', 'rack'), driver: 'nosuch' };
  expect(conductorOf([conductor('a', 'rack'), conductor('b')], lost)).toBeUndefined();
  expect(periodicConductorOf([conductor('a', 'rack'), conductor('b')], lost)?.hostname).toBe('a');
  expect(periodicConductorOf([conductor('b')], lost)).toBeUndefined();
  expect(periodicConductorOf([conductor('a', 'rack')], node('x', 'rack'))?.hostname).toBe('a');
});
