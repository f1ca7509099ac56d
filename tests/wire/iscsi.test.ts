import { iscsiBoot, iscsiVolume } from '../../wire/iscsi';

const IQN = 'iqn.2010-10.org.openstack:volume-1';
const volume = (changes: Readonly<Record<string, unknown>> = {}) => ({
  target_iqn: IQN,
  target_portal: '192.0.2.5:3260',
  target_lun: 1,
  ...changes,
});

describe('iscsiVolume', () => {
  it.each<[string, Readonly<Record<string, unknown>>, readonly string[]]>([
    ['an address with its port', {}, [`iscsi:192.0.2.5::3260:1:${IQN}`]],
    ['an address without a port', { target_portal: '192.0.2.5' }, [`iscsi:192.0.2.5:::1:${IQN}`]],
    ['a name', { target_portal: 'storage.example.org:3260' }, [`iscsi:storage.example.org::3260:1:${IQN}`]],
    ['IPv6', { target_portal: '[2001:db8::5]:3260' }, [`iscsi:[2001:db8::5]::3260:1:${IQN}`]],
    ['IPv6 without a port', { target_portal: '[2001:db8::5]' }, [`iscsi:[2001:db8::5]:::1:${IQN}`]],
    ['a LUN in hexadecimal digits', { target_lun: 26 }, [`iscsi:192.0.2.5::3260:1a:${IQN}`]],
    ['a LUN as text', { target_lun: '0' }, [`iscsi:192.0.2.5::3260:0:${IQN}`]],
    ['values that are lists', { target_lun: [2], target_portal: ['192.0.2.6:1'], target_iqn: [IQN] }, [`iscsi:192.0.2.6::1:2:${IQN}`]],
    [
      'several paths',
      { target_portals: ['192.0.2.5:3260', '192.0.2.6:3260'], target_iqns: [IQN, `${IQN}b`], target_luns: [1, 2] },
      [`iscsi:192.0.2.5::3260:1:${IQN}`, `iscsi:192.0.2.6::3260:2:${IQN}b`],
    ],
    [
      'several portals of one target',
      { target_portals: ['192.0.2.5:3260', '192.0.2.6:3260'] },
      [`iscsi:192.0.2.5::3260:1:${IQN}`, `iscsi:192.0.2.6::3260:1:${IQN}`],
    ],
  ])('builds root paths from %s', (_name, changes, rootPaths) => expect(iscsiVolume(volume(changes))).toEqual({ rootPaths }));

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['target_portal is missing', { target_portal: undefined }],
    ['target_portal is not an address with an optional port', { target_portal: '192.0.2.5:3260 || shell' }],
    ['target_portal is not an address with an optional port', { target_portal: '${next-server}' }],
    ['target_portal is not an address with an optional port', { target_portal: '2001:db8::5' }],
    ['target_portal is not an address with an optional port', { target_portal: '192.0.2.5:99999' }],
    ['target_portal is not an address with an optional port', { target_portal: 5 }],
    ['target_portal is not an address with an optional port', { target_portal: 'a'.repeat(400) }],
    ['target_iqn is not the name of an iSCSI target', { target_iqn: undefined }],
    ['target_iqn is not the name of an iSCSI target', { target_iqn: `${IQN} shell` }],
    ['target_iqn is not the name of an iSCSI target', { target_iqn: `${IQN}\nshell` }],
    ['target_lun is not an integer from 0 to 16383', { target_lun: undefined }],
    ['target_lun is not an integer from 0 to 16383', { target_lun: -1 }],
    ['target_lun is not an integer from 0 to 16383', { target_lun: '1x' }],
    ['auth_password is not a text of at most 255 bytes', { auth_password: 'ü'.repeat(128) }],
    ['auth_username is not a text of at most 255 bytes', { auth_username: 7 }],
  ])('fails because %s: %j', (reason, changes) => expect(() => iscsiVolume(volume(changes))).toThrow(reason));
});

describe('iscsiBoot', () => {
  const target = (index: number, changes: object = {}) => ({
    uuid: `target-${index}`,
    volume_type: 'iscsi',
    boot_index: index,
    properties: volume({ target_lun: index }),
    ...changes,
  });
  const connectors = [
    { type: 'ip', connector_id: '192.0.2.9' },
    { type: 'iqn', connector_id: 'iqn.2017-08.org.example:node' },
  ];

  it('returns the volumes in the order of their boot index, with credentials', () => {
    const secrets = { ...volume(), auth_username: 'u', auth_password: 'p', auth_method: 'CHAP' };
    expect(iscsiBoot(connectors, [target(1), target(0, { properties: secrets })])).toEqual({
      initiator: 'iqn.2017-08.org.example:node',
      volumes: [
        { rootPaths: [`iscsi:192.0.2.5::3260:1:${IQN}`], username: 'u', password: 'p' },
        { rootPaths: [`iscsi:192.0.2.5::3260:1:${IQN}`] },
      ],
    });
  });
  it('returns undefined without an iSCSI boot volume', () => {
    expect(iscsiBoot(connectors, [target(1)])).toBeUndefined();
    expect(iscsiBoot(connectors, [target(0, { volume_type: 'fibre_channel' }), target(1)])).toBeUndefined();
    expect(iscsiBoot([], [target(0), target(1, { volume_type: 'fibre_channel' })])?.volumes).toHaveLength(1);
  });
  it('names the invalid target property or connector in its error', () => {
    expect(() => iscsiBoot([], [target(0, { properties: {} })])).toThrow('Volume target target-0: target_portal is missing');
    expect(() => iscsiBoot([{ type: 'iqn', connector_id: 'x ${y}' }], [target(0)])).toThrow(
      'The volume connector of type iqn is not the name of an initiator',
    );
  });
});
