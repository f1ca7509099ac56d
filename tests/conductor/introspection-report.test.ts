import { readReport } from '../../conductor/introspection/report';

const MAC = '52:54:00:aa:00:01';
const interfaces = [{ name: 'eth0', mac_address: '52:54:00:AA:00:01', ipv4_address: '10.0.0.1' }];

it('reads the addresses of the BMC in one form', () => {
  const { bmcAddresses } = readReport({ inventory: { interfaces, bmc_address: '::FFFF:10.0.0.9', bmc_v6address: '2001:DB8:0::5' } }, 'pxe');
  expect(bmcAddresses).toEqual(['10.0.0.9', '2001:db8::5']);
});
it.each(['52:54:00:AA:00:01', '01-52-54-00-AA-00-01'])('finds the boot interface %s', (boot_interface) => {
  expect(readReport({ inventory: { interfaces }, boot_interface }, 'pxe').data).toMatchObject({
    interfaces: { eth0: { mac: MAC, pxe: true } },
  });
});
