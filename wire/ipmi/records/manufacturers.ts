/** Who makes BMCs: numbers of IANA's private enterprises (Get Device ID, IPMI 2.0 §20.1) → their names there, as ipmitool shows them. */
const MANUFACTURERS: Readonly<Record<number, string>> = {
  2: 'IBM',
  11: 'Hewlett-Packard',
  42: 'Sun Microsystems',
  119: 'NEC Corporation',
  343: 'Intel Corporation',
  674: 'Dell Inc.',
  2011: 'HUAWEI Technology Co.,Ltd',
  4769: 'IBM Corporation',
  5771: 'Cisco Systems, Inc.',
  6569: 'INVENTEC CORPORATION',
  6653: 'Tyan Computer Corporation',
  7244: 'Quanta Computer Inc.',
  10876: 'Super Micro Computer Inc.',
  15370: 'GIGA-BYTE TECHNOLOGY CO., LTD',
  19046: 'Lenovo Enterprise Business Group',
  20301: 'IBM eServer X',
  20569: 'Inventec Enterprise System Corp.',
  34774: 'Huawei Symantec Technologies Co.,Ltd',
  40092: 'Wiwynn Corporation',
  42817: 'IBM Platform Firmware Division',
  47196: 'Hewlett Packard Enterprise',
  48512: 'Inspur Group Co.,Ltd.',
  49622: 'ASRock Rack Incorporation',
};
const AT = 6;

/** Who made the controller that answered Get Device ID so; undefined: nobody that is known here. */
export const manufacturerOf = (deviceId: Buffer): string | undefined =>
  deviceId.length < AT + 3 ? undefined : MANUFACTURERS[deviceId.readUIntLE(AT, 3) & 0x0fffff];
