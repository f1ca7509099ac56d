// The parts of the lab: the test files of tests/lab and tests/chaos, with what each needs.

/**
 * Part (file below tests/, or below tests/lab/, without its ending) → the groups of Debian packages (tests/lab/packages.txt), and rough
 * seconds on two quiet processors. A part with `namespaces` makes network namespaces; with `pypi`, it gets programs from PyPI once.
 * A part that is `rare` takes long and tests what changes rarely: it runs only if it or its folder is named, or with --all.
 * @typedef {{ groups: string[], seconds: number, namespaces?: boolean, pypi?: boolean, rare?: boolean }} Part
 * @type {Readonly<Record<string, Part>>}
 */
export const PARTS = {
  'boot/boot-disk': { groups: ['machines', 'image'], seconds: 60, namespaces: true },
  'boot/dhcp': { groups: ['machines', 'network'], seconds: 55, namespaces: true },
  'boot/dhcpv6': { groups: ['machines', 'network'], seconds: 20, namespaces: true },
  'boot/dnsmasq': { groups: ['machines', 'network'], seconds: 8, namespaces: true },
  'boot/mdns': { groups: ['machines', 'python'], seconds: 30, namespaces: true, pypi: true },
  'boot/pxe': { groups: ['machines', 'image'], seconds: 55, namespaces: true },
  'boot/tftp': { groups: ['network'], seconds: 30 },
  'deployment/configdrive': { groups: ['image'], seconds: 1 },
  'deployment/disk-names': { groups: ['machines', 'python', 'ramdisk', 'agent'], seconds: 240, pypi: true, rare: true },
  'deployment/disk': { groups: ['image', 'machines'], seconds: 11 },
  'deployment/end-to-end-ipmi': {
    groups: ['machines', 'ipmi', 'libvirt', 'python', 'ramdisk', 'image', 'network'],
    seconds: 620,
    namespaces: true,
    pypi: true,
  },
  'deployment/end-to-end-redfish': {
    groups: ['machines', 'libvirt', 'python', 'ramdisk', 'image', 'network'],
    seconds: 550,
    namespaces: true,
    pypi: true,
  },
  'deployment/ipv6': { groups: ['machines', 'ipmi', 'ramdisk', 'image', 'network'], seconds: 330, namespaces: true },
  'deployment/lifecycle': { groups: ['python', 'ipmi'], seconds: 60, pypi: true },
  'deployment/ramdisk': { groups: ['machines', 'ipmi', 'ramdisk', 'image'], seconds: 150 },
  'deployment/save-disk': { groups: ['machines', 'ramdisk', 'image'], seconds: 60 },
  'deployment/snapshots': { groups: ['machines', 'ipmi', 'ramdisk', 'image', 'network'], seconds: 400, namespaces: true },
  'deployment/static-addresses': {
    groups: ['machines', 'libvirt', 'python', 'ramdisk', 'image', 'network', 'agent', 'switches'],
    seconds: 600,
    namespaces: true,
    pypi: true,
    rare: true,
  },
  'deployment/switch-moves': { groups: ['machines', 'python', 'switches'], seconds: 90, namespaces: true, pypi: true },
  'deployment/switches': {
    groups: ['machines', 'libvirt', 'python', 'ramdisk', 'image', 'network', 'switches'],
    seconds: 400,
    namespaces: true,
    pypi: true,
    rare: true,
  },
  'deployment/tls': {
    groups: ['machines', 'libvirt', 'python', 'ramdisk', 'image', 'network', 'agent'],
    seconds: 500,
    namespaces: true,
    pypi: true,
    rare: true,
  },
  'deployment/volume': { groups: ['machines', 'ipmi', 'image', 'network', 'iscsi'], seconds: 300, namespaces: true },
  'inspection/discoverd': { groups: ['network'], seconds: 30 },
  'inspection/discovery': { groups: ['machines', 'ipmi', 'python', 'ramdisk'], seconds: 100, namespaces: true, pypi: true },
  'inspection/inspection': { groups: ['machines', 'ramdisk', 'network'], seconds: 45, namespaces: true },
  'inspection/introspection': { groups: ['python'], seconds: 30, pypi: true },
  'inspection/introspection-killed': { groups: [], seconds: 25 },
  'inspection/inventory': { groups: ['machines', 'ramdisk', 'network'], seconds: 67, namespaces: true },
  'inspection/recorder': { groups: ['machines', 'ramdisk'], seconds: 100, namespaces: true },
  'ipmi/ipmi': { groups: ['ipmi', 'network', 'python'], seconds: 27, pypi: true },
  'ipmi/ipmi-network': { groups: [], seconds: 47 },
  'ipmi/ipmi-server': { groups: ['ipmi'], seconds: 63 },
  'ipmi/ipmi-sol': { groups: ['ipmi'], seconds: 5 },
  'ipmi/ipmi-stores': { groups: ['ipmi'], seconds: 6 },
  'ipmi/virtualbmc': { groups: ['machines', 'ipmi', 'libvirt', 'python'], seconds: 20, namespaces: true, pypi: true },
  'packages/chart': { groups: ['python'], seconds: 80, pypi: true },
  'packages/debian': { groups: ['packages'], seconds: 90 },
  'packages/image': { groups: ['packages'], seconds: 80 },
  'packages/metal3': { groups: ['packages', 'machines', 'network'], seconds: 110, namespaces: true },
  'packages/npm': { groups: [], seconds: 70 },
  'page/console': { groups: ['browser'], seconds: 40 },
  'page/log-in': { groups: ['browser'], seconds: 40 },
  'page/page': { groups: ['browser'], seconds: 220 },
  'redfish/redfish': { groups: ['libvirt', 'python'], seconds: 30, pypi: true },
  'redfish/redfish-https': { groups: ['machines', 'libvirt', 'python', 'ramdisk', 'network'], seconds: 150, namespaces: true, pypi: true },
  'redfish/redfish-settings': { groups: ['machines', 'libvirt', 'python'], seconds: 6, namespaces: true, pypi: true },
  'redfish/redfish-sushy': { groups: ['python'], seconds: 16, pypi: true },
  'redfish/redfish-validators': { groups: ['python', 'schemas'], seconds: 60, pypi: true },
  'server/database': { groups: [], seconds: 28 },
  'server/fuzz': { groups: ['python'], seconds: 90, pypi: true },
  'server/snapshot-s3': { groups: ['python'], seconds: 30, pypi: true },
  'simulator/simulate': { groups: ['ipmi'], seconds: 30 },
  'simulator/simulate-qemu': { groups: ['machines', 'ipmi', 'image'], seconds: 17 },
  'support/contained': { groups: ['machines'], seconds: 2, namespaces: true },
  'support/namespace': { groups: ['machines'], seconds: 1, namespaces: true },
  'chaos/fencing': { groups: [], seconds: 32 },
  'chaos/rounds': { groups: [], seconds: 120 },
};

/** The test file of a part, from the root. @param {string} part */
export const fileOf = (part) => `tests/${part.startsWith('chaos/') ? '' : 'lab/'}${part}.test.ts`;
