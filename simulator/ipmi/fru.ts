/** Encodes a FRU inventory (Platform Management FRU Information Storage Definition 1.0). */
const END = 0xc1;
const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, 'latin1').subarray(0, 0x3f);
  return Buffer.concat([Buffer.from([0xc0 | bytes.length]), bytes]);
};
const checked = (bytes: Buffer): Buffer => {
  bytes[bytes.length - 1] = -bytes.reduce((sum, byte) => sum + byte, 0) & 0xff;
  return bytes;
};
/** An area's length is a multiple of 8 bytes. Its second byte is the length in units of 8 bytes; its last byte is a checksum. */
function area(head: readonly number[], fields: readonly string[]): Buffer {
  const body = Buffer.concat([Buffer.from([0x01, 0, ...head]), ...fields.map(text), Buffer.from([END])]);
  const whole = Buffer.concat([body], Math.ceil((body.length + 1) / 8) * 8);
  whole[1] = whole.length / 8;
  return checked(whole);
}
const MANUFACTURER = 'Bloomery';
const PRODUCT = 'Simulated machine';
/** 2026-01-01 in minutes since 1996-01-01. */
const MANUFACTURED = (Date.UTC(2026, 0, 1) - Date.UTC(1996, 0, 1)) / 60_000;
const RACK_MOUNT = 0x17;
const ENGLISH = 0x19;

/** @param serial the serial number of chassis, board and product */
export function fruBytes(serial: string): Buffer {
  const areas = [
    area([RACK_MOUNT], [PRODUCT, serial]),
    area([ENGLISH, MANUFACTURED & 0xff, (MANUFACTURED >> 8) & 0xff, MANUFACTURED >> 16], [MANUFACTURER, PRODUCT, serial, 'SIM-1', '']),
    area([ENGLISH], [MANUFACTURER, PRODUCT, 'SIM-1', '1.0', serial, '', '']),
  ];
  let at = 1;
  const offsets = areas.map(({ length }) => {
    const start = at;
    at += length / 8;
    return start;
  });
  return Buffer.concat([checked(Buffer.from([0x01, 0, ...offsets, 0, 0, 0])), ...areas]);
}
