/** Names of the numbers in sensor data records, as ipmitool writes them: clients of Ironic know sensors by these. */

/** Table 42-3. */
const SENSOR_TYPES =
  'reserved|Temperature|Voltage|Current|Fan|Physical Security|Platform Security|Processor|Power Supply|Power Unit|Cooling Device|Other|Memory|Drive Slot / Bay|POST Memory Resize|System Firmwares|Event Logging Disabled|Watchdog1|System Event|Critical Interrupt|Button|Module / Board|Microcontroller|Add-in Card|Chassis|Chip Set|Other FRU|Cable / Interconnect|Terminator|System Boot Initiated|Boot Error|OS Boot|OS Critical Stop|Slot / Connector|System ACPI Power State|Watchdog2|Platform Alert|Entity Presence|Monitor ASIC|LAN|Management Subsys Health|Battery|Session Audit|Version Change|FRU State'.split(
    '|',
  );
export const sensorTypeName = (type: number): string => SENSOR_TYPES[type] ?? (type >= 0xc0 ? 'OEM reserved' : 'Unknown');

/** Table 43-13. */
const ENTITIES =
  'Unspecified|Other|Unknown|Processor|Disk or Disk Bay|Peripheral Bay|System Management Module|System Board|Memory Module|Processor Module|Power Supply|Add-in Card|Front Panel Board|Back Panel Board|Power System Board|Drive Backplane|System Internal Expansion Board|Other System Board|Processor Board|Power Unit|Power Module|Power Management|Chassis Back Panel Board|System Chassis|Sub-Chassis|Other Chassis Board|Disk Drive Bay|Peripheral Bay|Device Bay|Fan Device|Cooling Unit|Cable/Interconnect|Memory Device|System Management Software|BIOS|Operating System|System Bus|Group|Remote Management Device|External Environment|Battery|Processing Blade|Connectivity Switch|Processor/Memory Module|I/O Module|Processor/IO Module|Management Controller Firmware|IPMI Channel|PCI Bus|PCI Express Bus|SCSI Bus (parallel)|SATA/SAS Bus|Processor/Front-Side Bus|Real Time Clock(RTC)'.split(
    '|',
  );
const FURTHER_ENTITIES: Readonly<Record<number, string>> = {
  55: 'Air Inlet',
  64: 'Air Inlet',
  65: 'Processor',
  66: 'Baseboard/Main System Board',
  160: 'PICMG Front Board',
  192: 'PICMG Rear Transition Module',
  193: 'PICMG AdvancedMC Module',
  240: 'PICMG Shelf Management Controller',
  241: 'PICMG Filtration Unit',
  242: 'PICMG Shelf FRU Information',
  243: 'PICMG Alarm Panel',
};
export const entityName = (id: number): string =>
  ENTITIES[id] ?? FURTHER_ENTITIES[id] ?? `Unknown (0x${id.toString(16).toUpperCase().padStart(2, '0')})`;

/** Table 43-15. */
const UNITS =
  'unspecified|degrees C|degrees F|degrees K|Volts|Amps|Watts|Joules|Coulombs|VA|Nits|lumen|lux|Candela|kPa|PSI|Newton|CFM|RPM|Hz|microsecond|millisecond|second|minute|hour|day|week|mil|inches|feet|cu in|cu feet|mm|cm|m|cu cm|cu m|liters|fluid ounce|radians|steradians|revolutions|cycles|gravities|ounce|pound|ft-lb|oz-in|gauss|gilberts|henry|millihenry|farad|microfarad|ohms|siemens|mole|becquerel|PPM|reserved|Decibels|DbA|DbC|gray|sievert|color temp deg K|bit|kilobit|megabit|gigabit|byte|kilobyte|megabyte|gigabyte|word|dword|qword|line|hit|miss|retry|reset|overflow|underrun|collision|packets|messages|characters|error|correctable error|uncorrectable error|fatal error|grams'.split(
    '|',
  );
export const unitName = (unit: number): string => UNITS[unit] ?? 'invalid';
