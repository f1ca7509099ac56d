/** A service whose firmware pads texts with NULs, or sends half of a surrogate pair. */
import { attributesOf, registryOf, settingsOf } from '../../../drivers/redfish/steps/bios-settings';
import { evaluate } from '../../../wire/redfish/transport';

const read = (status: number, body: unknown) => evaluate('GET', 'http://bmc/redfish/v1/', status, {}, Buffer.from(JSON.stringify(body)));

it('BIOS values and their registry lose the padding', async () => {
  const { body } = await read(200, { Attributes: { 'Boot\0': 'Uefi\0\0', Other: 'a\0b', Number: 5 } });
  const registry = await read(200, {
    RegistryEntries: { Attributes: [{ AttributeName: 'Boot\0', Type: 'Enumeration\0', Value: [{ ValueName: 'Uefi\0' }] }] },
  });
  expect(settingsOf(attributesOf(body), registryOf(registry.body))).toMatchObject([
    { name: 'Boot', value: 'Uefi', attribute_type: 'Enumeration', allowable_values: ['Uefi'] },
    { name: 'Other', value: 'a\ufffdb' },
    { name: 'Number', value: '5' },
  ]);
});
it('an error has texts that the database accepts, with the end of a long one', async () => {
  const message = `No \0 \ud800 thing.${'x'.repeat(5000)} The fan is missing.`;
  await expect(read(400, { error: { code: 'c\0', message } })).rejects.toMatchObject({
    message: expect.stringMatching(/c: No \ufffd \ufffd thing\.x* \[…\] x* The fan is missing\.$/) as unknown,
  });
});
